package nn

import (
	"cmp"
	"iter"
	"slices"
	"strconv"

	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/swiglu"
)

// Config is the shape of a [Llama]. Vocab, Dim, Layers, Heads, Hidden and
// Context must be set; the rest have useful zero values.
type Config struct {
	Vocab   int // number of tokens
	Dim     int // width of the residual stream
	Layers  int
	Heads   int // query heads, each of Dim/Heads, which must be even
	KVHeads int // key and value heads, a divisor of Heads; 0: Heads
	HeadDim int // of a head's query, key and value; 0: Dim/Heads
	Hidden  int // width of the MLP
	Context int // longest sequence

	RopeTheta float64 // base of the rotary frequencies; 0: 10000
	NormEps   float64 // added to the mean square in RMSNorm; 0: 1e-5
	TieHead   bool    // use the embedding as the output head
	Workers   int     // goroutines; 0: GOMAXPROCS. Results do not depend on it.

	RopeScaling RopeScaling // of the rotary frequencies
	RotaryDim   int         // the first elements of a head, which are rotated; even; 0: all

	// Windows has the sliding window of each layer's attention: how many tokens a token sees,
	// itself the last of them; 0: all before it. nil: every layer sees all.
	Windows []int

	// WindowRopeTheta, unless 0, is the base of the rotary frequencies in layers with a window,
	// which are not scaled, as in Gemma 3.
	WindowRopeTheta float64

	Norms  Norms  // besides one before attention and one before the MLP
	Biases Biases // of linear layers

	Sinks      bool    // each head's softmax has one more score, learned, of a key without a value (gpt-oss)
	ScoreScale float64 // that attention's scores are multiplied by; 0: 1/√(elements of a key's head)
	ScoreCap   float64 // unless 0, scores s become ScoreCap·tanh(s/ScoreCap), before the mask
	LogitCap   float64 // likewise of the logits

	EmbeddingScale float64 // that rows of the embedding are multiplied by; 0: 1

	Gate Gate // of the MLPs and of experts

	// MLA takes the place of grouped queries where it is not nil. Its Dim, Heads and Rotary are
	// those of the Config, and to be left out, as is KVHeads; so is a NormEps of 0.
	MLA *MLAConfig

	// Experts take the place of the MLPs where they are not nil, but for those of the first
	// Dense layers and of DenseLayers, which rise. Their Dim is that of the Config, and to be
	// left out. They go without Smoothing.
	Experts     *ExpertsConfig
	Dense       int
	DenseLayers []int

	FP8       *FP8              // recipes of the linear layers; nil: FP32
	Rounding  *Rounding         // of the linear layers' operands, without FP8; nil: none
	Smoothing *swiglu.Smoothing // of the MLPs' SwiGLU; nil: plain SwiGLU

	// BF16First and BF16Last of the layers, the first and the last, multiply as
	// [DefaultRounding] of BF16 says and keep activations in FP32, instead of FP8: the last
	// are the most sensitive (arXiv 2509.25149). They need FP8.
	BF16First, BF16Last int

	Activations ActivationFormat // how they are kept for Backward; all but the zero value need FP8

	// Policies are those of the layers, where some of what a backward pass reads is computed
	// again instead of kept; nil: all as Activations say. They change no bit, and so a saved
	// configuration is without, as it is without Workers. [Config.SearchPolicies] finds them.
	Policies []Policy

	Operators Operators // formats of what is not a product of linear layers; the zero value: FP32
}

// Limits of a Config beyond which its memory, in any case, is not to be had. They are
// checked before anything is allocated.
const (
	maxLayers            = 1 << 16
	maxParameters uint64 = 1 << 40
)

// Validate returns an error that names the first field that is out of range, its
// value and the constraint. It is [ErrConfig].
func (c Config) Validate() error {
	c = c.withDefaults()
	for _, f := range []struct {
		name  string
		value int
	}{
		{"Vocab", c.Vocab}, {"Dim", c.Dim}, {"Layers", c.Layers}, {"Heads", c.Heads},
		{"KVHeads", c.KVHeads}, {"Hidden", c.Hidden}, {"Context", c.Context},
	} {
		if f.value <= 0 {
			return configError("Config.%s is %d: it must be positive", f.name, f.value)
		}
	}
	switch {
	case c.Dim%2 != 0 || c.Dim/2%c.Heads != 0:
		return configError("Config.Dim is %d: it must be a multiple of 2·Heads, and Heads is %d", c.Dim, c.Heads)
	case c.Heads%c.KVHeads != 0:
		return configError("Config.KVHeads is %d: it must divide Heads = %d", c.KVHeads, c.Heads)
	case c.Context > elementary.SinCosLimit:
		return configError("Config.Context is %d: it must be at most %d", c.Context, int(elementary.SinCosLimit))
	case c.Layers > maxLayers:
		return configError("Config.Layers is %d: it must be at most %d", c.Layers, maxLayers)
	case c.BF16First < 0 || c.BF16Last < 0 || c.BF16First > c.Layers || c.BF16Last > c.Layers-c.BF16First:
		return configError("Config.BF16First is %d and Config.BF16Last %d: they must not be negative, and together at most Layers = %d", c.BF16First, c.BF16Last, c.Layers)
	case c.BF16First+c.BF16Last > 0 && c.FP8 == nil:
		return configError("Config.BF16First is %d and Config.BF16Last %d: without FP8 there is nothing that they are left out of", c.BF16First, c.BF16Last)
	case c.MLA != nil && c.KVHeads != c.Heads:
		return configError("Config.KVHeads is %d: with MLA leave it out", c.KVHeads)
	case c.Dense < 0 || c.Dense > c.Layers || c.Dense > 0 && c.Experts == nil:
		return configError("Config.Dense is %d: it must be from 0 to Layers = %d, and without Experts 0",
			c.Dense, c.Layers)
	case c.Experts != nil && c.Smoothing != nil:
		return configError("Config.Smoothing: experts have none: leave it out")
	case !validTheta(c.RopeTheta):
		return configError("Config.RopeTheta is %v: it must be from 1 to 1e12", c.RopeTheta)
	case !validEps(c.NormEps):
		return configError("Config.NormEps is %v: it must be above 0 and at most 1", c.NormEps)
	}
	if err := c.RopeScaling.check("Config.RopeScaling"); err != nil {
		return err
	}
	if err := c.checkParts(); err != nil {
		return err
	}
	if err := c.checkSizes(); err != nil {
		return err
	}
	if err := c.options(nil).check("Config"); err != nil {
		return err
	}
	return c.checkPolicies()
}

// checkParts returns an error if MLA or Experts cannot be.
func (c Config) checkParts() error {
	if m := c.MLA; m != nil {
		if m.Dim != 0 || m.Heads != 0 || m.Rotary != nil {
			return configError("Config.MLA: Dim, Heads and Rotary are those of the Config: leave them out")
		}
		if err := c.mla(nil).check(); err != nil {
			return err
		}
	}
	if c.Experts == nil {
		return nil
	}
	if c.Experts.Dim != 0 {
		return configError("Config.Experts.Dim is %d: it is that of the Config: leave it out", c.Experts.Dim)
	}
	return c.experts().check("")
}

// mla returns the shape of the attention of each layer, which must be MLA.
func (c Config) mla(r *Rotary) MLAConfig {
	m := *c.MLA
	m.Dim, m.Heads, m.Rotary = c.Dim, c.Heads, r
	m.NormEps = cmp.Or(m.NormEps, c.NormEps)
	return m
}

// experts returns the shape of the experts of a layer, of which there must be some.
func (c Config) experts() ExpertsConfig {
	x := *c.Experts
	x.Dim = c.Dim
	return x
}

// isMixture reports whether a layer has experts.
func (c Config) isMixture(layer int) bool { return c.Experts != nil && layer >= c.Dense }

// checkSizes returns an error if a matrix or all of them are too large.
func (c Config) checkSizes() error {
	for _, m := range []struct {
		rows, cols         string
		rowCount, colCount int
	}{
		{"Vocab", "Dim", c.Vocab, c.Dim}, {"Dim", "Dim", c.Dim, c.Dim},
		{"Hidden", "Dim", c.Hidden, c.Dim}, {"Context", "Dim", c.Context, c.Dim},
	} {
		if _, ok := product(m.rowCount, m.colCount); !ok {
			return configError("Config.%s is %d and Config.%s is %d: a matrix of both must have at most %d elements",
				m.rows, m.rowCount, m.cols, m.colCount, maxElements)
		}
	}
	if n := c.parameters(); n > maxParameters {
		return configError("Config has %d parameters: it must have at most %d", n, maxParameters)
	}
	return nil
}

// parameters returns the number of trained values. No matrix and not the number of
// layers may be too large.
func (c Config) parameters() (n uint64) {
	first := c.Layers // layers with MLPs
	if c.Experts != nil {
		first = c.Dense
	}
	for layer, layers := range map[int]int{first - 1: first, c.Layers: c.Layers - first} {
		if layers > 0 {
			for s := range c.layerShapes(layer) {
				n += uint64(s.Rows) * uint64(s.Cols) * uint64(layers)
			}
		}
	}
	table := uint64(c.Vocab) * uint64(c.Dim)
	if !c.TieHead {
		table *= 2
	}
	return n + table + uint64(c.Dim)
}

// Shape is the name and size of a parameter.
type Shape struct {
	Name       string
	Rows, Cols int
}

// Shapes returns the shapes of all parameters of a [Llama] with this configuration, in
// the order of [Llama.Params], without making any: to compare a file with them before
// memory is taken. The configuration must be valid.
func (c Config) Shapes() iter.Seq[Shape] {
	c = c.withDefaults()
	return func(yield func(Shape) bool) {
		if !yield(Shape{embeddingName, c.Vocab, c.Dim}) {
			return
		}
		for layer := range c.Layers {
			for s := range c.layerShapes(layer) {
				if !yield(s) {
					return
				}
			}
		}
		if !yield(Shape{lastNormName, 1, c.Dim}) {
			return
		}
		if !c.TieHead {
			yield(Shape{headName, c.Vocab, c.Dim})
		}
	}
}

// The names of a Hugging Face Llama.
const (
	embeddingName = "model.embed_tokens.weight"
	lastNormName  = "model.norm.weight"
	headName      = "lm_head.weight"
)

func layerPrefix(layer int) string { return "model.layers." + strconv.Itoa(layer) + "." }

// layerShapes returns those of a layer, in the order of [Block.Params].
func (c Config) layerShapes(layer int) iter.Seq[Shape] {
	kv := c.Dim / c.Heads * c.KVHeads
	attention := []Shape{
		{"q_proj", c.Dim, c.Dim}, {"k_proj", kv, c.Dim}, {"v_proj", kv, c.Dim}, {"o_proj", c.Dim, c.Dim},
	}
	if c.MLA != nil {
		attention = c.mla(nil).shapes()
	}
	prefix := layerPrefix(layer)
	return func(yield func(Shape) bool) {
		each := func(prefix string, shapes ...Shape) bool {
			for _, s := range shapes {
				s.Name = prefix + s.Name + ".weight"
				if !yield(s) {
					return false
				}
			}
			return true
		}
		if !each(prefix, Shape{"input_layernorm", 1, c.Dim}) || !each(prefix+"self_attn.", attention...) ||
			!each(prefix, Shape{"post_attention_layernorm", 1, c.Dim}) {
			return
		}
		if !c.isMixture(layer) {
			each(prefix+"mlp.", mlpShapes(c.Dim, c.Hidden)...)
			return
		}
		x := c.experts()
		if !each(prefix+"mlp.", Shape{"gate", x.Router.Experts, c.Dim}) {
			return
		}
		for e := range x.Router.Experts {
			if !each(prefix+"mlp.experts."+strconv.Itoa(e)+".", mlpShapes(c.Dim, x.Hidden)...) {
				return
			}
		}
		if x.Shared > 0 {
			each(prefix+"mlp.shared_experts.", mlpShapes(c.Dim, x.Shared*x.Hidden)...)
		}
	}
}

func mlpShapes(dim, hidden int) []Shape {
	return []Shape{{"gate_proj", hidden, dim}, {"up_proj", hidden, dim}, {"down_proj", dim, hidden}}
}

func (c Config) withDefaults() Config {
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.RopeTheta == 0 {
		c.RopeTheta = defaultRopeTheta
	}
	if c.NormEps == 0 {
		c.NormEps = defaultNormEps
	}
	return c
}

// clone returns a copy that shares nothing with c.
func (c Config) clone() Config {
	c.FP8, c.Rounding, c.Smoothing = copied(c.FP8), c.Rounding.clone(), copied(c.Smoothing)
	c.MLA, c.Experts = copied(c.MLA), copied(c.Experts)
	if c.Experts != nil {
		c.Experts.Router.Rounding = c.Experts.Router.Rounding.clone()
	}
	c.Policies = slices.Clone(c.Policies)
	return c
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// options returns those of the layers.
func (c Config) options(s *Shared) Options {
	return Options{
		Shared: s, FP8: c.FP8, Rounding: c.Rounding, Smoothing: c.Smoothing,
		Activations: c.Activations, Operators: c.Operators, Workers: c.Workers,
	}
}

// LayerOptions returns the options of a layer's linear layers, norms and so on, for those who
// build a [Llama] of its layers; they share s. Policies are no part of them: those are for
// the blocks of a Llama. The configuration must be valid.
func (c Config) LayerOptions(layer int, s *Shared) Options {
	o := c.options(s)
	if layer < c.BF16First || layer >= c.Layers-c.BF16Last {
		bf16 := DefaultRounding(NarrowBF16)
		o.FP8, o.Rounding, o.Activations = nil, &bf16, ActivationsFP32
	}
	return o
}

// layerOptions are LayerOptions with the policy of the layer, for a [Block] as a whole.
func (c Config) layerOptions(layer int, s *Shared) Options {
	o := c.LayerOptions(layer, s)
	if c.Policies != nil {
		o.policy = &c.Policies[layer]
	}
	return o
}

// HeadOptions returns those of the output head, which multiplies in FP32 unless Operators say
// otherwise, and keeps FP32.
func (c Config) HeadOptions(s *Shared) Options {
	o := Options{Shared: s, Workers: c.Workers}
	if f := c.Operators.Head; f != "" {
		r := DefaultRounding(f)
		o.Rounding = &r
	}
	return o
}

// rotaryDim returns the elements of a head that are rotated.
func (c Config) rotaryDim() int {
	if c.MLA != nil {
		return c.MLA.RoPE
	}
	return c.headDim()
}

func (c Config) headDim() int { return c.Dim / c.Heads }
