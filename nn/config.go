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
	Vocab   int `json:"vocab"` // number of tokens
	Dim     int `json:"dim"`   // width of the residual stream
	Layers  int `json:"layers"`
	Heads   int `json:"heads"`              // query heads
	KVHeads int `json:"kv_heads"`           // key and value heads, a divisor of Heads; 0: Heads
	HeadDim int `json:"head_dim,omitempty"` // of a head's query, key and value; 0: Dim/Heads, where Dim must be a multiple of Heads
	Hidden  int `json:"hidden"`             // width of the MLP
	Context int `json:"context"`            // longest sequence

	RopeTheta float64 `json:"rope_theta"` // base of the rotary frequencies; 0: 10000
	NormEps   float64 `json:"norm_eps"`   // added to the mean square in RMSNorm; 0: 1e-5
	TieHead   bool    `json:"tie_head"`   // use the embedding as the output head
	Workers   int     `json:"-"`          // goroutines; 0: GOMAXPROCS. Results do not depend on it.

	RopeScaling RopeScaling `json:"rope_scaling,omitzero"` // of the rotary frequencies
	RotaryDim   int         `json:"rotary_dim,omitempty"`  // the first elements of a head, which are rotated; even; 0: all

	// Windows has the sliding window of each layer's attention: how many tokens a token sees,
	// itself the last of them; 0: all before it. nil: every layer sees all.
	Windows []int `json:"windows,omitempty"`

	// WindowRopeTheta, unless 0, is the base of the rotary frequencies in layers with a window,
	// which are not scaled, as in Gemma 3.
	WindowRopeTheta float64 `json:"window_rope_theta,omitempty"`

	Norms  Norms  `json:"norms,omitzero"`  // besides one before attention and one before the MLP
	Biases Biases `json:"biases,omitzero"` // of linear layers

	Sinks      bool    `json:"sinks,omitempty"`       // each head's softmax has one more score, learned, of a key without a value (gpt-oss)
	ScoreScale float64 `json:"score_scale,omitempty"` // that attention's scores are multiplied by; 0: 1/√(elements of a key's head)
	ScoreCap   float64 `json:"score_cap,omitempty"`   // unless 0, scores s become ScoreCap·tanh(s/ScoreCap), before the mask
	LogitCap   float64 `json:"logit_cap,omitempty"`   // likewise of the logits

	EmbeddingScale float64 `json:"embedding_scale,omitempty"` // that rows of the embedding are multiplied by; 0: 1

	Gate Gate `json:"gate,omitzero"` // of the MLPs and of experts

	// MLA takes the place of grouped queries where it is not nil. Its Dim, Heads, Rotary and Scores
	// are those of the Config, and to be left out, as is KVHeads; so is a NormEps of 0.
	MLA *MLAConfig `json:"mla,omitempty"`

	// Experts take the place of the MLPs where they are not nil, but for those of the first
	// Dense layers and of DenseLayers, which rise. Their Dim is that of the Config, and to be
	// left out. They go without Smoothing.
	Experts     *ExpertsConfig `json:"-"`
	Dense       int            `json:"dense,omitempty"`
	DenseLayers []int          `json:"dense_layers,omitempty"`

	FP8       *FP8              `json:"-"` // recipes of the linear layers; nil: FP32
	Rounding  *Rounding         `json:"-"` // of the linear layers' operands, without FP8; nil: none
	Smoothing *swiglu.Smoothing `json:"-"` // of the MLPs' SwiGLU; nil: plain SwiGLU

	// BF16First and BF16Last of the layers, the first and the last, multiply as
	// [DefaultRounding] of BF16 says and keep activations in FP32, instead of FP8: the last
	// are the most sensitive (arXiv 2509.25149). They need FP8.
	BF16First int `json:"bf16_first,omitempty"`
	BF16Last  int `json:"bf16_last,omitempty"`

	Activations ActivationFormat `json:"activations"` // how they are kept for Backward; all but the zero value need FP8

	// Policies are those of the layers, where some of what a backward pass reads is computed
	// again instead of kept; nil: all as Activations say. They change no bit, and so a saved
	// configuration is without, as it is without Workers. [Config.SearchPolicies] finds them.
	Policies []Policy `json:"-"`

	Operators Operators `json:"operators,omitzero"` // formats of what is not a product of linear layers; the zero value: FP32
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
	case c.HeadDim == 0 && c.MLA == nil && (c.Dim%2 != 0 || c.Dim/2%c.Heads != 0):
		return configError("Config.Dim is %d: it must be a multiple of 2·Heads, and Heads is %d, unless HeadDim is set",
			c.Dim, c.Heads)
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
	case c.DenseLayers != nil && (c.Experts == nil || !slices.IsSorted(c.DenseLayers) ||
		len(c.DenseLayers) > 0 && (c.DenseLayers[0] < c.Dense || c.DenseLayers[len(c.DenseLayers)-1] >= c.Layers)):
		return configError("Config.DenseLayers are %v: they must rise from Dense = %d to below Layers = %d, and there be Experts",
			c.DenseLayers, c.Dense, c.Layers)
	case !validTheta(c.RopeTheta):
		return configError("Config.RopeTheta is %v: it must be from 1 to 1e12", c.RopeTheta)
	case !validEps(c.NormEps):
		return configError("Config.NormEps is %v: it must be above 0 and at most 1", c.NormEps)
	}
	if err := c.checkAttention(); err != nil {
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

// checkAttention returns an error if heads, positions, windows or factors cannot be.
func (c Config) checkAttention() error {
	key, _, rotated := c.HeadDims()
	switch {
	case c.MLA != nil && (c.HeadDim != 0 || c.RotaryDim != 0 || c.Norms.QueryKey):
		return configError("Config.HeadDim is %d, RotaryDim %d and Norms.QueryKey %v: with MLA leave them out",
			c.HeadDim, c.RotaryDim, c.Norms.QueryKey)
	case c.HeadDim < 0:
		return configError("Config.HeadDim is %d: it must not be negative", c.HeadDim)
	case c.MLA == nil && (rotated <= 0 || rotated%2 != 0 || rotated > key):
		return configError("Config.RotaryDim is %d: of heads of %d elements an even number must be rotated", c.RotaryDim, key)
	case c.Windows != nil && len(c.Windows) != c.Layers:
		return configError("Config.Windows has %d: want one for each of %d layers, or none", len(c.Windows), c.Layers)
	case c.WindowRopeTheta != 0 && !validTheta(c.WindowRopeTheta):
		return configError("Config.WindowRopeTheta is %v: it must be 0 or from 1 to 1e12", c.WindowRopeTheta)
	case c.Biases.Router && c.Experts == nil:
		return configError("Config.Biases.Router is true: without Experts leave it out")
	}
	for i, w := range c.Windows {
		if w < 0 {
			return configError("Config.Windows[%d] is %d: it must not be negative", i, w)
		}
	}
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"ScoreScale", c.ScoreScale}, {"ScoreCap", c.ScoreCap}, {"LogitCap", c.LogitCap}, {"EmbeddingScale", c.EmbeddingScale},
	} {
		if !validFactor(f.value) {
			return factorError("Config."+f.name, f.value)
		}
	}
	return c.RopeScaling.checkFor("Config.RopeScaling", rotated, c.RopeTheta)
}

// checkParts returns an error if MLA or Experts cannot be.
func (c Config) checkParts() error {
	if m := c.MLA; m != nil {
		if m.Dim != 0 || m.Heads != 0 || m.Rotary != nil || m.Scores != (Scores{}) {
			return configError("Config.MLA: Dim, Heads, Rotary and Scores are those of the Config: leave them out")
		}
		if err := c.mla(0, nil).check(); err != nil {
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
func (c Config) mla(layer int, r *Rotary) MLAConfig {
	m := *c.MLA
	m.Dim, m.Heads, m.Rotary, m.Scores = c.Dim, c.Heads, r, c.Scores(layer)
	m.NormEps = cmp.Or(m.NormEps, c.NormEps)
	return m
}

// attention returns the shape of the attention of a layer, which must not be MLA.
func (c Config) attention(layer int, r *Rotary) AttentionConfig {
	key, _, _ := c.HeadDims()
	return AttentionConfig{
		Dim: c.Dim, Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: key, Rotary: r, Scores: c.Scores(layer),
	}
}

// Scores returns how attention of a layer makes probabilities, for those who build a [Llama] of
// its layers.
func (c Config) Scores(layer int) Scores {
	return Scores{Window: c.window(layer), Sinks: c.Sinks, Scale: c.ScoreScale, Cap: c.ScoreCap}
}

// window returns that of a layer, or 0.
func (c Config) window(layer int) int {
	if c.Windows == nil {
		return 0
	}
	return c.Windows[layer]
}

// HeadDims returns the elements of a head's query and key, of its value, and how many of the
// former are rotated: the first ones, or with MLA the last ones.
func (c Config) HeadDims() (key, value, rotated int) {
	if m := c.MLA; m != nil {
		return m.NoPE + m.RoPE, m.Value, m.RoPE
	}
	key = c.HeadDim
	if key == 0 && c.Heads > 0 {
		key = c.Dim / c.Heads
	}
	return key, key, cmp.Or(c.RotaryDim, key)
}

// Rotaries returns the rotations of layers that see all tokens and of those with a window, which
// may be the same. The configuration must be valid.
func (c Config) Rotaries() (all, windowed *Rotary) {
	c = c.withDefaults()
	key, _, rotated := c.HeadDims()
	if c.MLA != nil {
		key = rotated
	}
	all = newRotary(key, rotated, c.Context, c.RopeTheta, c.RopeScaling)
	if c.WindowRopeTheta == 0 || c.Windows == nil || slices.Max(c.Windows) == 0 {
		return all, all
	}
	return all, newRotary(key, rotated, c.Context, c.WindowRopeTheta, RopeScaling{})
}

// experts returns the shape of the experts of a layer, of which there must be some.
func (c Config) experts() ExpertsConfig {
	x := *c.Experts
	x.Dim = c.Dim
	return x
}

// isMixture reports whether a layer has experts.
func (c Config) isMixture(layer int) bool {
	_, dense := slices.BinarySearch(c.DenseLayers, layer)
	return c.Experts != nil && layer >= c.Dense && !dense
}

// Features returns the names of the fields that make a model other than a plain Llama, dense or
// with experts, with MLA or without, for those who cannot do with them.
func (c Config) Features() (names []string) {
	for _, f := range []struct {
		name string
		on   bool
	}{
		{"HeadDim", c.HeadDim != 0}, {"RotaryDim", c.RotaryDim != 0}, {"Windows", c.Windows != nil},
		{"WindowRopeTheta", c.WindowRopeTheta != 0}, {"Norms", c.Norms != Norms{}}, {"Biases", c.Biases != Biases{}},
		{"Sinks", c.Sinks}, {"ScoreScale", c.ScoreScale != 0}, {"ScoreCap", c.ScoreCap != 0}, {"LogitCap", c.LogitCap != 0},
		{"EmbeddingScale", c.EmbeddingScale != 0}, {"Gate", c.Gate != Gate{}}, {"DenseLayers", len(c.DenseLayers) > 0},
	} {
		if f.on {
			names = append(names, f.name)
		}
	}
	return names
}

// checkSizes returns an error if a matrix or all of them are too large.
func (c Config) checkSizes() error {
	for _, m := range []struct {
		rows, cols         string
		rowCount, colCount int
	}{
		{"Vocab", "Dim", c.Vocab, c.Dim}, {"Dim", "Dim", c.Dim, c.Dim},
		{"Heads", "HeadDim", c.Heads, c.HeadDim},
		{"Hidden", "Dim", c.Hidden, c.Dim}, {"Context", "Dim", c.Context, c.Dim},
	} {
		if _, ok := product(m.rowCount, m.colCount); !ok {
			return configError("Config.%s is %d and Config.%s is %d: a matrix of both must have at most %d elements",
				m.rows, m.rowCount, m.cols, m.colCount, maxElements)
		}
	}
	if c.MLA == nil {
		if err := c.attention(0, nil).check(); err != nil {
			return err
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
	mixtures := 0
	for layer := range c.Layers {
		if c.isMixture(layer) {
			mixtures++
		}
	}
	for mixture, layers := range map[bool]int{true: mixtures, false: c.Layers - mixtures} {
		if layers > 0 {
			for s := range c.shapesOf("", mixture) {
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
	return c.shapesOf(layerPrefix(layer), c.isMixture(layer))
}

// shapesOf returns those of a layer with experts or an MLP.
func (c Config) shapesOf(prefix string, mixture bool) iter.Seq[Shape] {
	norm := func(name string, has bool) []Shape {
		if !has {
			return nil
		}
		return []Shape{{name + "_layernorm.weight", 1, c.Dim}}
	}
	var attention []Shape
	if c.MLA != nil {
		attention = c.mla(0, nil).shapes(c.Biases)
	} else {
		attention = c.attention(0, nil).shapes(c.Norms, c.Biases)
	}
	return func(yield func(Shape) bool) {
		each := func(prefix string, shapes []Shape) bool {
			for _, s := range shapes {
				s.Name = prefix + s.Name
				if !yield(s) {
					return false
				}
			}
			return true
		}
		if each(prefix, norm("input", true)) && each(prefix+"self_attn.", attention) &&
			each(prefix, norm("post_self_attn", c.Norms.After)) && each(prefix, norm("post_attention", true)) &&
			c.eachFeedForward(prefix+"mlp.", mixture, each) {
			each(prefix, norm("post_mlp", c.Norms.After))
		}
	}
}

// eachFeedForward calls each with the shapes of experts or of an MLP, until it returns false.
func (c Config) eachFeedForward(prefix string, mixture bool, each func(prefix string, shapes []Shape) bool) bool {
	if !mixture {
		return each(prefix, mlpShapes(c.Dim, c.Hidden, c.Biases.MLP))
	}
	x := c.experts()
	if !each(prefix, linearShapes("gate", x.Router.Experts, c.Dim, c.Biases.Router)) {
		return false
	}
	expert := mlpShapes(c.Dim, x.Hidden, c.Biases.MLP)
	for e := range x.Router.Experts {
		if !each(prefix+"experts."+strconv.Itoa(e)+".", expert) {
			return false
		}
	}
	return x.Shared == 0 || each(prefix+"shared_experts.", mlpShapes(c.Dim, x.Shared*x.Hidden, c.Biases.MLP))
}

func mlpShapes(dim, hidden int, bias bool) []Shape {
	return slices.Concat(linearShapes("gate_proj", hidden, dim, bias), linearShapes("up_proj", hidden, dim, bias),
		linearShapes("down_proj", dim, hidden, bias))
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
	c.Policies, c.Windows, c.DenseLayers = slices.Clone(c.Policies), slices.Clone(c.Windows), slices.Clone(c.DenseLayers)
	c.RopeScaling.Short, c.RopeScaling.Long = slices.Clone(c.RopeScaling.Short), slices.Clone(c.RopeScaling.Long)
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
		Norms: c.Norms, Biases: c.Biases, Gate: c.Gate,
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
