package evaluate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
)

// Mode says which operands of linear layers are quantized.
type Mode uint8

// The modes.
const (
	Both Mode = iota
	Weights
	Activations
)

var modes = enum.Enum[Mode]{
	Type: "Mode", What: "mode", Err: ErrOptions, Prefix: "evaluate",
	Names: []string{"both", "weights", "activations"},
}

// Modes returns all modes.
func Modes() []Mode { return []Mode{Weights, Activations, Both} }

// ParseMode returns the mode of a name.
func ParseMode(name string) (Mode, error) { return modes.Parse(name) }

// String returns the name of m, such as "weights".
func (m Mode) String() string                   { return modes.String(m) }
func (m Mode) MarshalText() ([]byte, error)     { return modes.MarshalText(m) }
func (m *Mode) UnmarshalText(text []byte) error { return modes.UnmarshalText(m, text) }

// Recipe is how the two operands of linear layers are quantized.
type Recipe struct {
	Name          string
	Input, Weight nn.Narrowing

	// BF16Results rounds results to BF16 where both operands are rounded in another way than
	// under recipes of package scaling.
	BF16Results bool

	// Layers, unless nil, has a recipe for each linear layer, by names such as
	// "model.layers.0.mlp.up_proj", in place of what is above.
	Layers map[string]Recipe
}

// bf16 is the name of the recipe that rounds to BF16.
const bf16 = "bf16"

// Names returns names that [ParseRecipe] knows without a format: those of [nn.Recipes],
// "bf16", and the profiles of package scaling that are not delayed.
func Names() (names []string) {
	for _, r := range nn.Recipes() {
		names = append(names, r.Name)
	}
	names = append(names, bf16)
	for _, p := range scaling.Profiles() {
		if !p.Delayed() {
			names = append(names, string(p))
		}
	}
	return names
}

// ParseRecipe returns the recipe of a name: one of [Names], or a profile and a format that it
// is for, such as "mx-floor:e3m2". Blocks are those that the library of the profile uses for
// activations and for weights, but that a profile of NVFP4 has weights in blocks of 1x16, as
// checkpoints hold them: those of 16x16 are of training, as in nvfp4.
func ParseRecipe(name string) (Recipe, error) {
	if r, err := nn.ParseRecipe(name); err == nil {
		return recipeOf(name, r.FP8.Forward.A, r.FP8.Forward.B), nil
	}
	if name == bf16 {
		r := nn.DefaultRounding(nn.NarrowBF16)
		return Recipe{Name: name, Input: r.Input, Weight: r.Weight, BF16Results: r.BF16Results}, nil
	}
	profile, format, found := strings.Cut(name, ":")
	p := scaling.Profile(profile)
	switch {
	case p.Delayed() && p != "":
		return Recipe{}, optionError("recipe %s takes its scale from the amax of earlier steps, "+
			"which a model does not hold: use %s", p, scaling.TECurrent)
	case p == "" || !slices.Contains(scaling.Profiles(), p):
		return Recipe{}, optionError("there is no recipe %.80q: want one of %s, "+
			"or a profile and a format, such as mx-floor:e3m2", name, strings.Join(Names(), ", "))
	}
	input, weight := p.Recipe(scaling.Input), p.Recipe(scaling.Weight)
	if p.Outer() {
		weight.Block = input.Block
	}
	if found {
		f, err := fp8.ParseFormat(format)
		if err != nil {
			return Recipe{}, optionError("recipe %.80q: %w", name, err)
		}
		if !p.For(f) {
			return Recipe{}, optionError("recipe %.80q: %s is not for %v", name, p, f)
		}
		input.Format, weight.Format = f, f
	}
	r := recipeOf(name, input, weight)
	return r, r.check()
}

func recipeOf(name string, input, weight scaling.Recipe) Recipe {
	return Recipe{Name: name, Input: nn.Narrowing{Recipe: &input}, Weight: nn.Narrowing{Recipe: &weight}}
}

// String describes the operands: format, block and profile of activations and of weights.
func (r Recipe) String() string {
	if r.Layers != nil {
		return r.mixedString()
	}
	if r.Input.Recipe == nil || r.Weight.Recipe == nil {
		return fmt.Sprintf("%s, %s", describe(r.Input), describe(r.Weight))
	}
	in, w := describe(r.Input), describe(r.Weight)
	if in == w {
		return in
	}
	x, y := r.Input.Recipe, r.Weight.Recipe
	if x.Profile == y.Profile && x.Format == y.Format {
		return in + ", weights " + y.Block.String()
	}
	return in + ", weights " + w
}

func describe(n nn.Narrowing) string {
	if r := n.Recipe; r != nil {
		return fmt.Sprintf("%v %v %s", r.Format, r.Block, cmp.Or(r.Profile, scaling.TEBlockPow2))
	}
	if n.Format == "" {
		return "FP32"
	}
	return string(n.Format)
}

// options returns those of a linear layer in a mode.
func (r Recipe) options(m Mode) nn.Options {
	switch {
	case m == Weights:
		return nn.Options{Rounding: &nn.Rounding{Weight: r.Weight}}
	case m == Activations:
		return nn.Options{Rounding: &nn.Rounding{Input: r.Input}}
	case r.Input.Recipe == nil || r.Weight.Recipe == nil:
		return nn.Options{Rounding: &nn.Rounding{
			Input: r.Input, Weight: r.Weight, BF16Results: r.BF16Results,
		}}
	}
	x, w := *r.Input.Recipe, *r.Weight.Recipe
	forward := nn.Operands{A: x, B: w}
	return nn.Options{FP8: &nn.FP8{
		Forward: forward, InputGradient: forward, WeightGradient: nn.Operands{A: x, B: x},
	}}
}

// check returns an error unless a layer can have the options of every mode.
func (r Recipe) check() error {
	for name, of := range r.Layers {
		if of.Layers != nil {
			return optionError("recipe %.80q of %s is one for each linear layer itself", of.Name, name)
		}
		if err := of.check(); err != nil {
			return err
		}
	}
	for _, m := range Modes() {
		if _, err := nn.NewLinear(r.Name, 1, 1, r.options(m)); err != nil {
			return optionError("recipe %.80q, %v: %w", r.Name, m, err)
		}
	}
	return nil
}
