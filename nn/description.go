package nn

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

// Description says what a model is, in a form that a checkpoint keeps and compares: the
// model that is restored must have the same.
type Description struct {
	Kind    string `json:"kind"`    // such as "llama"
	Version int    `json:"version"` // of the form of Config
	Config  any    `json:"config"`  // becomes a JSON object; enumerations should be text
}

const (
	llamaKind    = "llama"
	llamaVersion = 1
)

// Describe returns the configuration as a checkpoint keeps it: all that results depend
// on, and not Workers.
func (m *Llama) Describe() Description {
	return Description{Kind: llamaKind, Version: llamaVersion, Config: newSavedConfig(m.cfg)}
}

// ParseConfig returns the configuration of a [Llama] from its description, without
// Workers. It is valid. The error, [ErrConfig], is one that names the kind or version,
// if it is another, or the first field that cannot be.
func ParseConfig(d Description) (Config, error) {
	if d.Kind != llamaKind || d.Version != llamaVersion {
		return Config{}, configError("the model is of kind %.40q, version %d: this package reads %q, version %d", d.Kind, d.Version, llamaKind, llamaVersion)
	}
	text, err := json.Marshal(d.Config)
	if err != nil {
		return Config{}, configError("%w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var s savedConfig
	switch err := decoder.Decode(&s); {
	case errors.Is(err, ErrConfig): // of an enumeration
		return Config{}, err
	case err != nil:
		return Config{}, configError("%w", err)
	}
	c := s.config()
	return c, c.Validate()
}

// savedConfig is a [Config] in a file.
type savedConfig struct {
	Vocab       int              `json:"vocab"`
	Dim         int              `json:"dim"`
	Layers      int              `json:"layers"`
	Heads       int              `json:"heads"`
	KVHeads     int              `json:"kv_heads"`
	Hidden      int              `json:"hidden"`
	Context     int              `json:"context"`
	RopeTheta   float64          `json:"rope_theta"`
	NormEps     float64          `json:"norm_eps"`
	TieHead     bool             `json:"tie_head"`
	FP8         *savedFP8        `json:"fp8"`
	BF16First   int              `json:"bf16_first,omitempty"` // absent in files of before
	BF16Last    int              `json:"bf16_last,omitempty"`
	Rounding    *savedRounding   `json:"rounding"`
	Smoothing   *savedSmoothing  `json:"smoothing"`
	Activations ActivationFormat `json:"activations"`

	RopeScaling *savedRopeScaling `json:"rope_scaling,omitempty"` // absent in files of before
	Operators   *savedOperators   `json:"operators,omitempty"`

	MLA     *savedMLA     `json:"mla,omitempty"` // likewise
	Experts *savedExperts `json:"experts,omitempty"`
	Dense   int           `json:"dense,omitempty"`
}

type savedMLA struct {
	QueryRank int `json:"query_rank"`
	KVRank    int `json:"kv_rank"`
	NoPE      int `json:"nope"`
	RoPE      int `json:"rope"`
	Value     int `json:"value"`

	NormEps float64 `json:"norm_eps,omitempty"` // absent in files of before
}

type savedExperts struct {
	Hidden         int     `json:"hidden"`
	Shared         int     `json:"shared"`
	CapacityFactor float64 `json:"capacity_factor"`
	Experts        int     `json:"experts"`
	TopK           int     `json:"top_k"`
	Score          Scoring `json:"score"`
	Unnormalized   bool    `json:"unnormalized"`
	Scale          float64 `json:"scale"`
	Groups         int     `json:"groups"`
	TopGroups      int     `json:"top_groups"`
	BiasRate       float64 `json:"bias_rate"`
	BalanceLoss    float64 `json:"balance_loss"`

	Rounding *savedRounding `json:"rounding,omitempty"` // of the router; absent in files of before
}

type savedOperators struct {
	Reductions    NarrowFormat `json:"reductions,omitempty"`
	Normalization NarrowFormat `json:"normalization,omitempty"`
	Softmax       NarrowFormat `json:"softmax,omitempty"`
	Embedding     NarrowFormat `json:"embedding,omitempty"`
	Head          NarrowFormat `json:"head,omitempty"`
	Residual      NarrowFormat `json:"residual,omitempty"`
}

type savedRopeScaling struct {
	Factor   float64 `json:"factor"`
	Original int     `json:"original"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`

	YaRN        bool      `json:"yarn,omitempty"` // absent in files of before
	Untruncated bool      `json:"untruncated,omitempty"`
	Attention   float64   `json:"attention,omitempty"`
	Short       []float64 `json:"short,omitempty"`
	Long        []float64 `json:"long,omitempty"`
}

type savedFP8 struct {
	Forward        savedOperands `json:"forward"`
	InputGradient  savedOperands `json:"input_gradient"`
	WeightGradient savedOperands `json:"weight_gradient"`
	Stochastic     bool          `json:"stochastic"`
	Seed           uint64        `json:"seed,string"`
	Hadamard       bool          `json:"hadamard,omitempty"` // absent in files of before
	Signs          uint16        `json:"signs,omitempty"`
	RoundScales    bool          `json:"round_scales,omitempty"`
}

type savedOperands struct {
	A savedRecipe `json:"a"`
	B savedRecipe `json:"b"`
}

type savedRecipe struct {
	Profile  scaling.Profile       `json:"profile"`
	Format   fp8.Format            `json:"format"`
	Block    [2]int                `json:"block"` // rows, columns; 0: all
	Epsilon  float32               `json:"epsilon"`
	Overflow fp8.Overflow          `json:"overflow"`
	Inf      fp8.Inf               `json:"inf"`
	NaN      fp8.NaN               `json:"nan"`
	Zero     fp8.Zero              `json:"zero,omitempty"`
	Rounding fp8.Rounding          `json:"rounding"`
	Quotient fp8.Quotient          `json:"quotient,omitempty"`
	Seed     uint64                `json:"seed,string"`
	Length   int                   `json:"history_length"`
	Margin   int                   `json:"margin"`
	Amax     scaling.AmaxAlgorithm `json:"amax"`

	OuterRows int `json:"outer_rows,omitempty"` // absent in files of before
}

type savedRounding struct {
	Input       savedNarrowing `json:"input"`
	Weight      savedNarrowing `json:"weight"`
	Gradient    savedNarrowing `json:"gradient"`
	BF16Results bool           `json:"bf16_results"`
	Stochastic  bool           `json:"stochastic"`
	Seed        uint64         `json:"seed,string"`
}

type savedNarrowing struct {
	Format     NarrowFormat `json:"format"`
	Block      [2]int       `json:"block"`
	ExactScale bool         `json:"exact_scale"`
	Recipe     *savedRecipe `json:"recipe,omitempty"` // absent in files of before
}

type savedSmoothing struct {
	Axis  swiglu.Axis `json:"axis"`
	Exact bool        `json:"exact"`
	Delay int         `json:"delay"`
}

func newSavedConfig(c Config) (s savedConfig) {
	s = savedConfig{
		Vocab: c.Vocab, Dim: c.Dim, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads, Hidden: c.Hidden,
		Context: c.Context, RopeTheta: c.RopeTheta, NormEps: c.NormEps, TieHead: c.TieHead, BF16First: c.BF16First, BF16Last: c.BF16Last, Activations: c.Activations,
	}
	s.Dense = c.Dense
	if m := c.MLA; m != nil {
		s.MLA = &savedMLA{m.QueryRank, m.KVRank, m.NoPE, m.RoPE, m.Value, m.NormEps}
	}
	if x := c.Experts; x != nil {
		r := x.Router.withDefaults()
		s.Experts = &savedExperts{
			x.Hidden, x.Shared, x.CapacityFactor, r.Experts, r.TopK, r.Score, r.Unnormalized,
			r.Scale, r.Groups, r.TopGroups, r.BiasRate, r.BalanceLoss, saveRounding(r.Rounding),
		}
	}
	if !c.RopeScaling.IsZero() {
		r := savedRopeScaling(c.RopeScaling)
		s.RopeScaling = &r
	}
	if c.Operators != (Operators{}) {
		o := savedOperators(c.Operators)
		s.Operators = &o
	}
	if f := c.FP8; f != nil {
		s.FP8 = &savedFP8{
			saveOperands(f.Forward), saveOperands(f.InputGradient), saveOperands(f.WeightGradient), f.Stochastic, f.Seed, f.Hadamard, f.Signs,
			f.RoundScales,
		}
	}
	s.Rounding = saveRounding(c.Rounding)
	if m := c.Smoothing; m != nil {
		s.Smoothing = &savedSmoothing{m.Axis, m.Exact, m.Delay}
	}
	return s
}

func (s savedConfig) config() (c Config) {
	c = Config{
		Vocab: s.Vocab, Dim: s.Dim, Layers: s.Layers, Heads: s.Heads, KVHeads: s.KVHeads, Hidden: s.Hidden,
		Context: s.Context, RopeTheta: s.RopeTheta, NormEps: s.NormEps, TieHead: s.TieHead, BF16First: s.BF16First, BF16Last: s.BF16Last, Activations: s.Activations,
	}
	c.Dense = s.Dense
	if m := s.MLA; m != nil {
		c.MLA = &MLAConfig{
			QueryRank: m.QueryRank, KVRank: m.KVRank, NoPE: m.NoPE, RoPE: m.RoPE, Value: m.Value,
			NormEps: m.NormEps,
		}
	}
	if x := s.Experts; x != nil {
		c.Experts = &ExpertsConfig{Hidden: x.Hidden, Shared: x.Shared, CapacityFactor: x.CapacityFactor}
		c.Experts.Router = RouterConfig{
			Experts: x.Experts, TopK: x.TopK, Score: x.Score, Unnormalized: x.Unnormalized, Scale: x.Scale,
			Groups: x.Groups, TopGroups: x.TopGroups, BiasRate: x.BiasRate, BalanceLoss: x.BalanceLoss,
			Rounding: x.Rounding.rounding(),
		}
	}
	if r := s.RopeScaling; r != nil {
		c.RopeScaling = RopeScaling(*r)
	}
	if o := s.Operators; o != nil {
		c.Operators = Operators(*o)
	}
	if f := s.FP8; f != nil {
		c.FP8 = &FP8{
			f.Forward.operands(), f.InputGradient.operands(), f.WeightGradient.operands(), f.Stochastic, f.Seed, f.Hadamard, f.Signs,
			f.RoundScales,
		}
	}
	c.Rounding = s.Rounding.rounding()
	if m := s.Smoothing; m != nil {
		c.Smoothing = &swiglu.Smoothing{Axis: m.Axis, Exact: m.Exact, Delay: m.Delay}
	}
	return c
}

// saveRounding returns r to be saved; nil of nil, as rounding does.
func saveRounding(r *Rounding) *savedRounding {
	if r == nil {
		return nil
	}
	return &savedRounding{
		saveNarrowing(r.Input), saveNarrowing(r.Weight), saveNarrowing(r.Gradient),
		r.BF16Results, r.Stochastic, r.Seed,
	}
}

func (r *savedRounding) rounding() *Rounding {
	if r == nil {
		return nil
	}
	return &Rounding{
		r.Input.narrowing(), r.Weight.narrowing(), r.Gradient.narrowing(),
		r.BF16Results, r.Stochastic, r.Seed,
	}
}

func saveOperands(o Operands) savedOperands { return savedOperands{saveRecipe(o.A), saveRecipe(o.B)} }

func (s savedOperands) operands() Operands { return Operands{s.A.recipe(), s.B.recipe()} }

func saveRecipe(r scaling.Recipe) savedRecipe {
	return savedRecipe{
		Profile: r.Profile, Format: r.Format, Block: [2]int{r.Block.Rows, r.Block.Cols}, Epsilon: r.Epsilon,
		Overflow: r.Policy.Overflow, Inf: r.Policy.Inf, NaN: r.Policy.NaN, Zero: r.Policy.Zero, Rounding: r.Policy.Rounding, Seed: r.Policy.Seed,
		Quotient: r.Policy.Quotient,
		Length:   r.Delayed.Length, Margin: r.Delayed.Margin, Amax: r.Delayed.Algorithm,
		OuterRows: r.OuterRows,
	}
}

func (s savedRecipe) recipe() scaling.Recipe {
	return scaling.Recipe{
		Profile: s.Profile, Format: s.Format, Block: tensor.Block{Rows: s.Block[0], Cols: s.Block[1]}, Epsilon: s.Epsilon,
		Policy:    fp8.Policy{Overflow: s.Overflow, Inf: s.Inf, NaN: s.NaN, Zero: s.Zero, Rounding: s.Rounding, Seed: s.Seed, Quotient: s.Quotient},
		Delayed:   scaling.Delayed{Length: s.Length, Margin: s.Margin, Algorithm: s.Amax},
		OuterRows: s.OuterRows,
	}
}

func saveNarrowing(n Narrowing) savedNarrowing {
	s := savedNarrowing{n.Format, [2]int{n.Block.Rows, n.Block.Cols}, n.ExactScale, nil}
	if n.Recipe != nil {
		r := saveRecipe(*n.Recipe)
		s.Recipe = &r
	}
	return s
}

func (s savedNarrowing) narrowing() Narrowing {
	n := Narrowing{s.Format, tensor.Block{Rows: s.Block[0], Cols: s.Block[1]}, s.ExactScale, nil}
	if s.Recipe != nil {
		r := s.Recipe.recipe()
		n.Recipe = &r
	}
	return n
}
