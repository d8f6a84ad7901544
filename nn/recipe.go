package nn

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Recipe is a way to train with narrow operands, as data: what products multiply, and
// which layers of a model do not. [Recipes] lists those that have names; their parts can
// be left out one by one, to see what each is worth.
type Recipe struct {
	Name string
	FP8  FP8

	// BF16Last is the share of a model's layers, the last ones, that stay in BF16, rounded
	// up to whole layers, but never all of them.
	BF16Last float64

	// Activations is how the recipe keeps them for the backward pass. ActivationsFP32: it
	// does not say.
	Activations ActivationFormat

	// BF16Moments says that the optimizer keeps its moments in BF16: set the Moments of
	// optim.AdamW, which are no part of a Config, to optim.MomentsBF16.
	BF16Moments bool
}

// Part is something that a recipe does beyond choosing formats and scales.
type Part uint8

const (
	// PartHadamard transforms the operands of the weight gradient, [FP8.Hadamard].
	PartHadamard Part = iota
	// PartStochastic rounds gradients at random, [FP8.Stochastic].
	PartStochastic
	// PartSquareWeights gives weights blocks as high as they are wide, so that the forward
	// pass and the input gradient multiply by the same values.
	PartSquareWeights
	// PartBF16Last leaves the last layers in BF16, [Recipe.BF16Last].
	PartBF16Last
	// PartRequantized makes the operands of weight gradients from activations that were
	// kept in FP8, and not from FP32, [Recipe.Activations].
	PartRequantized
	// PartRoundScales makes some scales powers of two, [FP8.RoundScales].
	PartRoundScales
	// PartBF16Moments keeps moments in BF16, [Recipe.BF16Moments].
	PartBF16Moments
)

var parts = enum.Enum[Part]{
	Type: "Part", What: "part of a recipe", Err: ErrConfig, Prefix: "nn",
	Names: []string{
		"hadamard", "stochastic", "square-weights", "bf16-last",
		"requantized", "round-scales", "bf16-moments",
	},
}

// Parts returns all parts, in a fixed order.
func Parts() []Part {
	return []Part{
		PartHadamard, PartStochastic, PartSquareWeights, PartBF16Last,
		PartRequantized, PartRoundScales, PartBF16Moments,
	}
}

// String returns the text of p, such as "square-weights".
func (p Part) String() string                   { return parts.String(p) }
func (p Part) MarshalText() ([]byte, error)     { return parts.MarshalText(p) }
func (p *Part) UnmarshalText(text []byte) error { return parts.UnmarshalText(p, text) }

// Recipes returns the recipes that have names:
//
//	fp8           [DefaultFP8]: formats and blocks of DeepSeek-V3, powers of two
//	mxfp8         E4M3 under E8M0 scales of 32 that are rounded up (arXiv 2506.08027)
//	mxfp4         E2M1 under the same scales, with the parts of nvfp4 but square weights,
//	              which would take them from what MX defines
//	nvfp4         NVIDIA's: E2M1 under UE4M3 scales of 16 under one float32, weights in
//	              blocks of 16x16, the weight gradient's operands transformed, gradients
//	              rounded at random, the last layers in BF16 (arXiv 2509.25149)
//	nvfp4-4over6  the same, inputs and weights under the better of two scales, by which
//	              their largest value becomes 4 or 6 (arXiv 2512.02010)
//	deepseek-v3   DeepSeek-V3's as it is (arXiv 2412.19437), which the package documentation
//	              describes: E4M3 under scales max/amax of 1x128, and of 128x128 for weights,
//	              some of them powers of two, weight gradients of activations that were kept
//	              in FP8 and quantized anew, moments in BF16
//
// As in all of this package, activations and gradients are FP32 before they are quantized,
// and products accumulate in FP32 in the canonical order, where the papers' have BF16 and
// what their GPUs do.
func Recipes() []Recipe {
	wide := tensor.Block{Rows: 1, Cols: 32}
	return []Recipe{
		{Name: "fp8", FP8: DefaultFP8()},
		{Name: "mxfp8", FP8: narrowFP8(scaling.MXRCeil, scaling.MXRCeil, fp8.E4M3, wide, wide)},
		{Name: "mxfp4", FP8: withParts(narrowFP8(scaling.MXRCeil, scaling.MXRCeil, fp8.E2M1, wide, wide)), BF16Last: bf16Share},
		{Name: "nvfp4", FP8: withParts(nvfp4(scaling.NVFP4TE)), BF16Last: bf16Share},
		{Name: "nvfp4-4over6", FP8: withParts(nvfp4(scaling.NVFP4TE4Over6MSE256)), BF16Last: bf16Share},
		deepSeekV3(),
	}
}

// deepSeekV3 has scales of float32 but where RoundScales has powers of two. Blocks are the
// profile's.
func deepSeekV3() Recipe {
	f := ProfileFP8(scaling.TEBlock, fp8.E4M3)
	f.RoundScales = true
	return Recipe{Name: "deepseek-v3", FP8: f, Activations: ActivationsDeepSeekV3, BF16Moments: true}
}

// bf16Share is about the share of layers that the 12 billion parameters of arXiv 2509.25149
// have in BF16.
const bf16Share = 0.15

func nvfp4(forward scaling.Profile) FP8 {
	return narrowFP8(forward, scaling.NVFP4TE, fp8.E2M1, tensor.Block{Rows: 1, Cols: 16}, tensor.Block{Rows: 16, Cols: 16})
}

// narrowFP8 has one format, under a profile for what the forward pass quantizes, and one
// for gradients.
func narrowFP8(forward, gradient scaling.Profile, f fp8.Format, tile, weight tensor.Block) FP8 {
	x := scaling.Recipe{Profile: forward, Format: f, Block: tile}
	w := scaling.Recipe{Profile: forward, Format: f, Block: weight}
	dy := scaling.Recipe{Profile: gradient, Format: f, Block: tile}
	return FP8{Forward: Operands{x, w}, InputGradient: Operands{dy, w}, WeightGradient: Operands{dy, x}}
}

// withParts adds those parts that an FP8 can have.
func withParts(f FP8) FP8 {
	f.Hadamard, f.Signs, f.Stochastic = true, scaling.NVIDIASigns, true
	return f
}

// ParseRecipe returns the recipe of a name.
func ParseRecipe(name string) (Recipe, error) {
	all := Recipes()
	names := make([]string, len(all))
	for i, r := range all {
		if r.Name == name {
			return r, nil
		}
		names[i] = r.Name
	}
	return Recipe{}, configError("unknown recipe %q: want one of %s", name, strings.Join(names, ", "))
}

// Has reports whether a part is in r.
func (r Recipe) Has(p Part) bool {
	switch p {
	case PartHadamard:
		return r.FP8.Hadamard
	case PartStochastic:
		return r.FP8.Stochastic
	case PartSquareWeights:
		b := r.FP8.Forward.B.Block
		return b.Rows > 1 && b.Rows == b.Cols
	case PartBF16Last:
		return r.BF16Last > 0
	case PartRequantized:
		return r.Activations.keepsTiles()
	case PartRoundScales:
		return r.FP8.RoundScales
	case PartBF16Moments:
		return r.BF16Moments
	}
	return false
}

// Without returns r without parts, and with a name that says so. What is not in it stays
// out.
func (r Recipe) Without(parts ...Part) Recipe {
	for _, p := range parts {
		if !r.Has(p) {
			continue
		}
		r.Name += " without " + p.String()
		switch p {
		case PartHadamard:
			r.FP8.Hadamard, r.FP8.Signs = false, 0
		case PartStochastic:
			r.FP8.Stochastic, r.FP8.Seed = false, 0
		case PartSquareWeights:
			r.FP8.Forward.B.Block.Rows, r.FP8.InputGradient.B.Block.Rows = 1, 1
		case PartBF16Last:
			r.BF16Last = 0
		case PartRequantized:
			r.Activations = ActivationsFP32
		case PartRoundScales:
			r.FP8.RoundScales = false
		case PartBF16Moments:
			r.BF16Moments = false
		}
	}
	return r
}

// Parts returns the parts that are in r.
func (r Recipe) Parts() []Part {
	return slices.DeleteFunc(Parts(), func(p Part) bool { return !r.Has(p) })
}

// Apply makes c train by r. The seed is that of gradients which are rounded at random. It
// leaves how activations are kept to c where r does not say, and the optimizer to the
// caller, as BF16Moments says.
func (r Recipe) Apply(c *Config, seed uint64) {
	f := r.FP8
	if f.Stochastic {
		f.Seed = seed
	}
	c.FP8, c.Rounding = &f, nil
	c.Activations = cmp.Or(r.Activations, c.Activations)
	c.BF16First = 0
	c.BF16Last = max(min(int(math.Ceil(r.BF16Last*float64(c.Layers))), c.Layers-1), 0)
}

// String returns the name.
func (r Recipe) String() string {
	if r.Name == "" {
		return fmt.Sprint(r.FP8.Forward.A)
	}
	return r.Name
}
