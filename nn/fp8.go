package nn

import (
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/scaling"
)

// Operands are the recipes of a product's two operands. Their blocks must go
// together along the sum, as package gemm says.
type Operands struct{ A, B scaling.Recipe }

// FP8 says how the operands of a linear layer's three products are quantized.
// Each is quantized from FP32 for its product, in the order in which the product
// sums, so a block of 1x128 lies along tokens for the weight gradient.
type FP8 struct {
	Forward        Operands `json:"-"` // x and W of y = x·Wᵀ
	InputGradient  Operands `json:"-"` // dy and Wᵀ of dx = dy·W
	WeightGradient Operands `json:"-"` // dyᵀ and xᵀ of dW = dyᵀ·x

	// Stochastic rounds the gradients, InputGradient.A and WeightGradient.A, up or down
	// at random, so that they are right on average, whatever their recipes' Policies
	// say of rounding. Fishman et al. (arXiv 2409.12517) do so with gradients in E5M2.
	//
	// The random numbers are new in each rounding: its seed is a hash of Seed, the
	// number of the backward pass (see [Scaling.BeginBackward]) and the name of the
	// operand, so that dy is rounded independently for its two products. A recipe whose own Policy
	// is stochastic would repeat the same numbers in every pass.
	Stochastic bool   `json:"stochastic"`
	Seed       uint64 `json:"seed,string"`

	// Hadamard transforms both operands of the weight gradient along the tokens that it
	// sums over, by [scaling.HadamardTransform] with these Signs, before they are
	// quantized. The product stays what it is, but for rounding; an outlier spreads over
	// its group of 16. Tokens at the end that fill no group stay as they are. Signs without
	// Hadamard are an error.
	Hadamard bool   `json:"hadamard,omitempty"`
	Signs    uint16 `json:"signs,omitempty"`

	// RoundScales makes scales powers of two where DeepSeek-V3 does (arXiv 2412.19437,
	// section 3.3.3), by the variant of a recipe's profile that has "-pow2" or "-ue8m0"
	// behind its name: those of the input of the layer after attention, of the input of
	// an MLP, and of the gradient of an MLP's output, in all products. There the last two
	// are what is sent to experts and back. It is of no effect on a layer by itself.
	RoundScales bool `json:"round_scales,omitempty"`
}

// DefaultFP8 returns the formats and blocks of DeepSeek-V3 (arXiv 2412.19437, section
// 3.3): E4M3 throughout, 1x128 for activations and gradients, 128x128 for weights, just
// in time; and power-of-two scales for all, as TransformerEngine has them by default. It is
// not DeepSeek-V3's recipe as it is: that makes the inputs of its weight gradients from
// FP8 activations that it kept, and here they are quantized from FP32, as all are, which
// is easier. [Recipes] has the other under the name deepseek-v3.
func DefaultFP8() FP8 { return ProfileFP8("", fp8.E4M3) }

// ProfileFP8 returns the recipes that a profile's library would use, with
// gradients in the given format: E4M3, or E5M2 for a hybrid recipe.
func ProfileFP8(profile scaling.Profile, gradient fp8.Format) FP8 {
	input, weight, dy := profile.Recipe(scaling.Input), profile.Recipe(scaling.Weight), profile.Recipe(scaling.Gradient)
	dy.Format = gradient
	return FP8{
		Forward:        Operands{input, weight},
		InputGradient:  Operands{dy, weight},
		WeightGradient: Operands{dy, input},
	}
}

// check returns an error that names the first recipe that cannot be used, the first
// product whose operands cannot be multiplied, or a field that nothing would come of.
func (f FP8) check() error {
	for _, o := range f.operands() {
		if err := o.recipe.Check(); err != nil {
			return configError("FP8.%s: %w", o.field, err)
		}
	}
	for _, p := range []struct {
		field string
		Operands
	}{
		{"Forward", f.Forward}, {"InputGradient", f.InputGradient}, {"WeightGradient", f.WeightGradient},
	} {
		if err := gemm.CheckBlocks(p.A.Block, p.B.Block); err != nil {
			return configError("FP8.%s: %w", p.field, err)
		}
	}
	if err := f.checkRoundScales(); err != nil {
		return err
	}
	if f.Signs != 0 && !f.Hadamard {
		return configError("FP8.Signs is %#04x: without FP8.Hadamard nothing is transformed", f.Signs)
	}
	return nil
}

// checkRoundScales returns an error that names the first operand whose scales have no
// powers of two to be rounded to.
func (f FP8) checkRoundScales() error {
	for _, o := range f.operands() {
		if f.RoundScales && o.tensor != "weight" && powerOfTwo(o.recipe.Profile) == noProfile {
			return configError("FP8.RoundScales: %s has profile %s, of which there is no variant with "+
				"powers of two: leave RoundScales out, or take %s",
				o.field, o.recipe.Profile, scaling.TEBlock)
		}
	}
	return nil
}

// roundScales returns r with scales of powers of two.
func roundScales(r scaling.Recipe) scaling.Recipe {
	r.Profile = powerOfTwo(r.Profile)
	return r
}

const noProfile scaling.Profile = "none"

// powerOfTwo returns the variant of a profile whose scales are powers of two, which may be
// itself, or noProfile.
func powerOfTwo(p scaling.Profile) scaling.Profile {
	if p == "" || p.E8M0() {
		return p
	}
	for _, ending := range []string{"-pow2", "-ue8m0"} {
		if strings.HasSuffix(string(p), ending) {
			return p
		}
		if q := p + scaling.Profile(ending); q.Valid() {
			return q
		}
	}
	return noProfile
}

// delayed reports whether any operand's recipe is.
func (f FP8) delayed() bool {
	return slices.ContainsFunc(f.operands(), func(o operand) bool { return o.recipe.Profile.Delayed() })
}

// operand names one of the six operands: in errors, in telemetry, and as the
// owner of a history.
type operand struct {
	field  string // of FP8
	op     string // the product, as told to a Reporter
	tensor string // the matrix, as told to a Reporter
	recipe scaling.Recipe
}

const (
	opForward        = "forward"
	opInputGradient  = "input-gradient"
	opWeightGradient = "weight-gradient"
	opSwiGLU         = "swiglu"
)

func (f FP8) operands() []operand {
	return []operand{
		{"Forward.A", opForward, "input", f.Forward.A},
		{"Forward.B", opForward, "weight", f.Forward.B},
		{"InputGradient.A", opInputGradient, "gradient", f.InputGradient.A},
		{"InputGradient.B", opInputGradient, "weight", f.InputGradient.B},
		{"WeightGradient.A", opWeightGradient, "gradient", f.WeightGradient.A},
		{"WeightGradient.B", opWeightGradient, "input", f.WeightGradient.B},
	}
}
