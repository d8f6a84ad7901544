package nn

import (
	"errors"
	"fmt"

	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Rounding makes linear layers multiply in FP32 what was rounded to a narrow format,
// "fake quantization": what BF16, and floats of 6 and 4 bits, would do to training,
// without a product in those formats. Scaling laws for precision ask for such runs
// (Kumar et al., arXiv 2411.04330; Sun et al., arXiv 2501.02423). Each of the six
// operands is rounded from FP32 for its product, in the order in which the product
// sums, so a block of 1x128 lies along tokens for the weight gradient, as in [FP8].
type Rounding struct {
	Input    Narrowing `json:"-"` // x of y = x·Wᵀ and of dW = dyᵀ·x
	Weight   Narrowing `json:"-"` // W of y = x·Wᵀ and of dx = dy·W
	Gradient Narrowing `json:"-"` // dy of dx = dy·W and of dW = dyᵀ·x

	// BF16Results rounds what the products give, y, dx and dW, to the nearest BF16, as
	// kernels do that write BF16.
	BF16Results bool `json:"bf16_results"`

	// Stochastic and Seed do with gradients what they do in [FP8]. With 4 bits,
	// gradients rounded to nearest are known to harm: TransformerEngine's NVFP4 recipe
	// rounds them at random.
	Stochastic bool   `json:"stochastic"`
	Seed       uint64 `json:"seed,string"`
}

// Narrowing is how operands are rounded: to nearest even, what is beyond the largest
// number of the format to that number; NaN and infinities stay what they are. The zero
// Narrowing leaves FP32.
//
// Values are multiplied by a scale m, rounded, and multiplied by 1/m, each in FP32: m
// belongs to a block and is chosen just in time from its largest magnitude, as in the
// profiles te-block-pow2 and te-block of package scaling. BF16 has FP32's range and no
// scale, whatever the other fields say; its overflow is infinite.
type Narrowing struct {
	Format     NarrowFormat `json:"format"`
	Block      tensor.Block `json:"-"`           // shares a scale
	ExactScale bool         `json:"exact_scale"` // m = max/amax, as Sun et al. scale; else the power of two at or below

	// Recipe, unless nil, takes the place of the others: values become what their codes under
	// it stand for, as [tensor.Dequantize] gives them. It must not be a delayed one. Gradients
	// that are rounded at random are so under its Policy.
	Recipe *scaling.Recipe `json:"-"`
}

// DefaultRounding returns a Rounding of all operands to one format. For BF16 that is
// the usual BF16 training: results are rounded too. Other formats share scales of
// powers of two in the blocks of [DefaultFP8], and results stay FP32, so that
// NarrowE4M3 does what DefaultFP8 does but for the order of sums.
func DefaultRounding(f NarrowFormat) Rounding {
	if f == NarrowBF16 {
		bf16 := Narrowing{Format: f}
		return Rounding{Input: bf16, Weight: bf16, Gradient: bf16, BF16Results: true}
	}
	narrowing := func(r scaling.Role) Narrowing { return Narrowing{Format: f, Block: scaling.Default(r).Block} }
	return Rounding{
		Input:    narrowing(scaling.Input),
		Weight:   narrowing(scaling.Weight),
		Gradient: narrowing(scaling.Gradient),
	}
}

// check returns an error that names the first field that cannot be used, of what is r.
func (r Rounding) check(what string) error {
	for _, n := range []struct {
		field string
		Narrowing
	}{
		{"Input", r.Input}, {"Weight", r.Weight}, {"Gradient", r.Gradient},
	} {
		if err := n.check(); err != nil {
			return configError("%s.%s: %w", what, n.field, err)
		}
	}
	return nil
}

func (n Narrowing) check() error {
	if n.Block.Rows < 0 || n.Block.Cols < 0 {
		return fmt.Errorf("block %dx%d has a negative extent", n.Block.Rows, n.Block.Cols)
	}
	if n.Recipe != nil {
		return n.checkRecipe()
	}
	if n.Format == "" {
		return nil
	}
	_, err := n.Format.number()
	return err
}

// checkRecipe returns an error if operands cannot be rounded under the recipe.
func (n Narrowing) checkRecipe() error {
	switch {
	case n.Format != "" || n.Block != tensor.Block{} || n.ExactScale:
		return errors.New("Recipe says what Format, Block and ExactScale are: leave them out")
	case n.Recipe.Profile.Delayed():
		return fmt.Errorf("Recipe is %s: delayed scales need FP8", n.Recipe.Profile)
	}
	return n.Recipe.Check()
}

// clone returns a copy that shares nothing with n.
func (n Narrowing) clone() Narrowing {
	n.Recipe = copied(n.Recipe)
	return n
}

// clone returns a copy that shares nothing with r; nil of nil.
func (r *Rounding) clone() *Rounding {
	if r == nil {
		return nil
	}
	c := *r
	c.Input, c.Weight, c.Gradient = r.Input.clone(), r.Weight.clone(), r.Gradient.clone()
	return &c
}
