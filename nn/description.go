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

// savedConfig is a [Config] in a file: what has a form of its own there takes the place of its
// fields. Fields that may be left out were not in files of before.
type savedConfig struct {
	Config
	FP8       *savedFP8       `json:"fp8"`
	Rounding  *savedRounding  `json:"rounding"`
	Smoothing *savedSmoothing `json:"smoothing"`
	Experts   *savedExperts   `json:"experts,omitempty"`
}

type savedExperts struct {
	ExpertsConfig
	RouterConfig
	Rounding *savedRounding `json:"rounding,omitempty"` // of the router
}

type savedFP8 struct {
	FP8
	Forward        savedOperands `json:"forward"`
	InputGradient  savedOperands `json:"input_gradient"`
	WeightGradient savedOperands `json:"weight_gradient"`
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

	OuterRows int     `json:"outer_rows,omitempty"` // absent in files of before
	OuterAmax float32 `json:"outer_amax,omitempty"` // likewise
}

type savedRounding struct {
	Rounding
	Input    savedNarrowing `json:"input"`
	Weight   savedNarrowing `json:"weight"`
	Gradient savedNarrowing `json:"gradient"`
}

type savedNarrowing struct {
	Narrowing
	Block  [2]int       `json:"block"`
	Recipe *savedRecipe `json:"recipe,omitempty"` // absent in files of before
}

type savedSmoothing struct {
	Axis  swiglu.Axis `json:"axis"`
	Exact bool        `json:"exact"`
	Delay int         `json:"delay"`
}

func newSavedConfig(c Config) savedConfig {
	s := savedConfig{Config: c, Rounding: saveRounding(c.Rounding), Smoothing: (*savedSmoothing)(c.Smoothing)}
	if x := c.Experts; x != nil {
		r := x.Router.withDefaults()
		s.Experts = &savedExperts{*x, r, saveRounding(r.Rounding)}
	}
	if f := c.FP8; f != nil {
		s.FP8 = &savedFP8{*f, saveOperands(f.Forward), saveOperands(f.InputGradient), saveOperands(f.WeightGradient)}
	}
	return s
}

func (s savedConfig) config() Config {
	c := s.Config
	c.Rounding, c.Smoothing = s.Rounding.rounding(), (*swiglu.Smoothing)(s.Smoothing)
	if x := s.Experts; x != nil {
		c.Experts = &x.ExpertsConfig
		c.Experts.Router = x.RouterConfig
		c.Experts.Router.Rounding = x.Rounding.rounding()
	}
	if f := s.FP8; f != nil {
		c.FP8 = &f.FP8
		c.FP8.Forward, c.FP8.InputGradient, c.FP8.WeightGradient =
			f.Forward.operands(), f.InputGradient.operands(), f.WeightGradient.operands()
	}
	return c
}

// saveRounding returns r to be saved; nil of nil, as rounding does.
func saveRounding(r *Rounding) *savedRounding {
	if r == nil {
		return nil
	}
	return &savedRounding{*r, saveNarrowing(r.Input), saveNarrowing(r.Weight), saveNarrowing(r.Gradient)}
}

func (s *savedRounding) rounding() *Rounding {
	if s == nil {
		return nil
	}
	r := s.Rounding
	r.Input, r.Weight, r.Gradient = s.Input.narrowing(), s.Weight.narrowing(), s.Gradient.narrowing()
	return &r
}

func saveOperands(o Operands) savedOperands { return savedOperands{saveRecipe(o.A), saveRecipe(o.B)} }

func (s savedOperands) operands() Operands { return Operands{s.A.recipe(), s.B.recipe()} }

func saveRecipe(r scaling.Recipe) savedRecipe {
	return savedRecipe{
		Profile: r.Profile, Format: r.Format, Block: [2]int{r.Block.Rows, r.Block.Cols}, Epsilon: r.Epsilon,
		Overflow: r.Policy.Overflow, Inf: r.Policy.Inf, NaN: r.Policy.NaN, Zero: r.Policy.Zero, Rounding: r.Policy.Rounding, Seed: r.Policy.Seed,
		Quotient: r.Policy.Quotient,
		Length:   r.Delayed.Length, Margin: r.Delayed.Margin, Amax: r.Delayed.Algorithm,
		OuterRows: r.OuterRows, OuterAmax: r.OuterAmax,
	}
}

func (s savedRecipe) recipe() scaling.Recipe {
	return scaling.Recipe{
		Profile: s.Profile, Format: s.Format, Block: tensor.Block{Rows: s.Block[0], Cols: s.Block[1]}, Epsilon: s.Epsilon,
		Policy:    fp8.Policy{Overflow: s.Overflow, Inf: s.Inf, NaN: s.NaN, Zero: s.Zero, Rounding: s.Rounding, Seed: s.Seed, Quotient: s.Quotient},
		Delayed:   scaling.Delayed{Length: s.Length, Margin: s.Margin, Algorithm: s.Amax},
		OuterRows: s.OuterRows, OuterAmax: s.OuterAmax,
	}
}

func saveNarrowing(n Narrowing) savedNarrowing {
	s := savedNarrowing{Narrowing: n, Block: [2]int{n.Block.Rows, n.Block.Cols}}
	if n.Recipe != nil {
		r := saveRecipe(*n.Recipe)
		s.Recipe = &r
	}
	return s
}

func (s savedNarrowing) narrowing() Narrowing {
	n := s.Narrowing
	n.Block = tensor.Block{Rows: s.Block[0], Cols: s.Block[1]}
	if s.Recipe != nil {
		r := s.Recipe.recipe()
		n.Recipe = &r
	}
	return n
}
