package nn

import (
	"strings"

	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/scaling"
)

// ActivationFormat is how activations are kept from the forward to the backward
// pass where [Config].Policies do not say otherwise. Whatever it is, the forward pass
// computes the same bits. The section Memory
// of the package documentation says what each format keeps.
type ActivationFormat uint8

const (
	// ActivationsFP32 keeps all that the backward pass reads as it was computed.
	ActivationsFP32 ActivationFormat = iota

	// ActivationsFP8 keeps of the input of a linear layer only what the product of
	// its weight gradient multiplies, xᵀ in FP8, which is quantized from FP32 in the
	// forward pass already, as TransformerEngine does with its columnwise copies; and
	// it computes the probabilities of attention again from queries and keys (Dao et
	// al., arXiv 2205.14135, section 3.1). Gradients have the same bits as with
	// ActivationsFP32.
	ActivationsFP8

	// ActivationsFP8SwiGLU also keeps both inputs of SwiGLU in FP8 and computes its
	// result again from those, for the weight gradient of the down projection, which
	// is not kept then (DeepSeek-V3, arXiv 2412.19437, section 3.3.3). They are in
	// blocks of 1x128 whatever Config.FP8 is: E4M3 with just-in-time powers of two,
	// the recipe scaling.Default(scaling.Input). Gradients are those of rounded
	// inputs, and so have other bits.
	ActivationsFP8SwiGLU

	// ActivationsDeepSeekV3 keeps what DeepSeek-V3 keeps (arXiv 2412.19437, sections 3.3.3
	// and 3.5.2). The input of a linear layer is kept as the codes that the forward product
	// multiplied, under scales along channels; in the backward pass they are decoded,
	// transposed, transformed where FP8.Hadamard says so, and quantized anew along tokens,
	// as FP8.WeightGradient.B says. Two are kept in other ways:
	//
	//   - the input of the layer after attention in E5M6: 1 bit of sign, 5 of exponent
	//     with a bias of 15, 6 of mantissa, the largest exponent for Inf and NaN, packed to
	//     12 bits, in tiles of 1x128 under the largest power of two that carries none past
	//     65024. The paper does not say where its bits are. The weight gradient
	//     multiplies what was kept, and so does the backward pass of attention: the mean
	//     that it subtracts from gradients of scores is the dot product of a row with its
	//     gradient, as in Dao et al. (arXiv 2205.14135, appendix B.2).
	//   - the input of the down projection not at all: both inputs of SwiGLU are kept in
	//     E4M3 in tiles of 1x128 under the scale max/amax, the profile te-block, and its
	//     result is computed again from those.
	//
	// Probabilities of attention are computed again, as with ActivationsFP8. Gradients are
	// those of what was kept, and so have other bits. Policies have norms in FP8 or computed
	// again, and never another way to keep what is rounded here.
	ActivationsDeepSeekV3
)

var activationFormats = enum.Enum[ActivationFormat]{
	Type: "ActivationFormat", What: "activation format", Names: []string{"fp32", "fp8", "fp8-swiglu", "deepseek-v3"},
	Err: ErrConfig, Prefix: "nn",
}

// ActivationFormats returns all formats.
func ActivationFormats() []ActivationFormat {
	return []ActivationFormat{ActivationsFP32, ActivationsFP8, ActivationsFP8SwiGLU, ActivationsDeepSeekV3}
}

// String returns the name of f, such as "fp8-swiglu".
func (f ActivationFormat) String() string               { return activationFormats.String(f) }
func (f ActivationFormat) MarshalText() ([]byte, error) { return activationFormats.MarshalText(f) }
func (f *ActivationFormat) UnmarshalText(text []byte) error {
	return activationFormats.UnmarshalText(f, text)
}

// keepsInputs reports whether inputs of linear layers, and with them all else, are
// kept in FP32.
func (f ActivationFormat) keepsInputs() bool { return f == ActivationsFP32 }

// keepsTiles reports whether inputs of linear layers are kept as the forward product
// multiplies them, and that of the layer after attention in E5M6.
func (f ActivationFormat) keepsTiles() bool { return f == ActivationsDeepSeekV3 }

// branchRecipe returns how the inputs of SwiGLU are kept, or nil where that is FP32.
func (f ActivationFormat) branchRecipe() *scaling.Recipe {
	r := scaling.Default(scaling.Input)
	switch f {
	case ActivationsFP8SwiGLU:
	case ActivationsDeepSeekV3:
		r.Profile = scaling.TEBlock
	default:
		return nil
	}
	return &r
}

// check returns an error if a layer with the given recipes cannot keep activations so.
func (f ActivationFormat) check(what string, recipes *FP8) error {
	if !activationFormats.Valid(f) {
		return configError("%s.Activations is %v: want one of %s", what, f, strings.Join(activationFormats.Names, ", "))
	}
	if f != ActivationsFP32 && recipes == nil {
		return configError("%s.Activations is %v and %s.FP8 is nil: set FP8, whose operands are what is kept, or keep activations in %v",
			what, f, what, ActivationsFP32)
	}
	return nil
}
