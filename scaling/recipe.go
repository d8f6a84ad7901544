package scaling

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Recipe says how a tensor is quantized. The zero Recipe is E4M3 with one scale
// for the tensor under te-block-pow2 arithmetic; [Default] and [Profile.Recipe]
// give those that are used in training. Recipes are comparable.
type Recipe struct {
	Profile Profile
	Format  fp8.Format
	Block   tensor.Block
	Policy  fp8.Policy // a field of value 0 is the profile's own, see [Profile.Policy]
	Epsilon float32    // a smaller amax is raised to it; te-current and te-block only
	Delayed Delayed    // te-delayed only

	// OuterRows is the number of rows under each outer scale of an nvfp4- profile: 0 is
	// as the profile has it, all of them or, for nvfp4-te-row, 1. The height of a stack's
	// matrices gives each a scale of its own.
	OuterRows int

	// OuterAmax, unless 0, is the amax that the outer scale of all rows follows from in place of
	// that of the values, such as of weights that share the scale with others.
	OuterAmax float32
}

// Default returns the recipe of te-block-pow2: E4M3, just in time, 1x128 for activations
// and gradients, 128x128 for weights, as DeepSeek-V3 has it (arXiv 2412.19437, section
// 3.3), but scales that are rounded up to powers of two, as TransformerEngine has it.
// Those of DeepSeek-V3's own kernels are amax/448: [Profile.Recipe] of [DeepSeek] has
// them. It panics if the role is unknown.
//
// It is a recipe for one tensor. DeepSeek-V3 requantizes activations for the weight
// gradient from FP8, whereas nn.DefaultFP8, which has these recipes, quantizes them from
// FP32.
func Default(role Role) Recipe { return TEBlockPow2.Recipe(role) }

// Recipe returns the recipe that p's library uses by default for a role: E4M3, or the
// format that p is for, in the profile's block. It panics if the role is unknown.
func (p Profile) Recipe(role Role) Recipe {
	r := Recipe{Profile: p, Block: p.Block(role)}
	if t := p.traits(); t != nil && t.formats != nil {
		r.Format = t.formats[0]
	}
	return r
}

// String returns the profile, format and block, such as
// "te-block-pow2 E4M3 1x128".
func (r Recipe) String() string {
	profile := r.Profile
	if profile == "" {
		profile = TEBlockPow2
	}
	return fmt.Sprintf("%s %v %v", profile, r.Format, r.Block)
}

// PerRow reports whether the codes and scales of a row follow from its values alone, so that
// they are the same whatever rows are quantized with it: blocks and outer scales are of one
// row, nothing comes from earlier steps, and nothing is rounded at random, which goes by an
// element's place.
func (r Recipe) PerRow() bool {
	if r.Check() != nil {
		return false
	}
	outer := r.Profile.traits().outer == nil || r.outerRows() == 1
	random := r.EncodePolicy().Rounding == fp8.Stochastic
	return r.Block.Rows == 1 && outer && !random && !r.Profile.Delayed()
}

// Check reports whether r can be used.
func (r Recipe) Check() error {
	switch {
	case !r.Profile.Valid():
		return r.Profile.unknown()
	case !r.Format.Valid():
		return sentinel.Errorf(fp8.ErrFormat, "scaling: recipe %v: unknown format", r)
	case r.Block.Rows < 0 || r.Block.Cols < 0:
		return sentinel.Errorf(ErrRecipe, "scaling: recipe %s: block %dx%d has a negative extent", r.Profile, r.Block.Rows, r.Block.Cols)
	case !(r.Epsilon >= 0) || !number.IsFinite(r.Epsilon):
		return sentinel.Errorf(ErrRecipe, "scaling: recipe %v: epsilon %v: want a finite number that is not negative", r, r.Epsilon)
	case r.Epsilon != 0 && !r.Profile.traits().epsilon:
		return sentinel.Errorf(ErrRecipe, "scaling: recipe %v: epsilon %v: this arithmetic has none", r, r.Epsilon)
	case !r.Profile.For(r.Format):
		return sentinel.Errorf(ErrRecipe, "scaling: recipe %v: this arithmetic is for %v", r, r.Profile.traits().formats)
	case r.Profile.traits().choice != nil && !choiceBlock(r.Block):
		return sentinel.Errorf(ErrRecipe, "scaling: recipe %v: this arithmetic is for blocks of 1x16 or 16x16", r)
	}
	if err := r.checkOuter(); err != nil {
		return err
	}
	if err := r.Policy.Check(); err != nil {
		return fmt.Errorf("scaling: recipe %v: %w", r, err)
	}
	return r.Delayed.check()
}

const noScale = "scaling: recipe is delayed, has outer scales or is unknown: amax alone gives no scale"

// Scale returns the scale of a block under a just-in-time recipe, from the
// largest magnitude among its float32 values. A NaN amax stands for a block
// with a NaN in it. It panics if the recipe is delayed, has outer scales or is unknown.
func (r Recipe) Scale(amax float32) fp8.Scale {
	t := r.Profile.traits()
	if t == nil || t.delayed || t.outer != nil {
		panic(noScale)
	}
	return t.scaleOf(amax, r.limits(math.MaxFloat32))
}

const noOuterScale = "scaling: recipe has no outer scales"

// OuterScale returns the outer scale of values with the given amax; NaN stands for values
// with a NaN among them. It panics unless the recipe has outer scales.
func (r Recipe) OuterScale(amax float32) float32 { return r.level(amax).stored }

// ScaleUnder is Scale of a block under the outer scale of values of the given amax. It
// panics unless the recipe has outer scales and the amax of a block determines its scale,
// as it does not where a profile chooses between two.
func (r Recipe) ScaleUnder(outerAmax, amax float32) fp8.Scale {
	l := r.limits(math.MaxFloat32)
	l.level = r.level(outerAmax)
	t := r.Profile.traits()
	if t.choice != nil {
		panic(noScale)
	}
	return t.scaleOf(amax, l)
}

func (r Recipe) level(amax float32) level {
	t := r.Profile.traits()
	if t == nil || t.outer == nil {
		panic(noOuterScale)
	}
	if amax != amax && t.leavesNaN {
		amax = 0
	}
	l := t.outer.level(amax)
	l.stored = number.Canonical(l.stored)
	return l
}

func (r Recipe) limits(source float32) limits {
	mantissa := r.Format.Mantissa()
	if r.Format == fp8.MXINT8 {
		mantissa-- // the first of its seven bits is before the point
	}
	return limits{max: r.Format.Max(), mantissa: mantissa, source: source, epsilon: r.Epsilon}
}

// EncodePolicy returns how r encodes: its Policy, with the profile's own in fields of value 0.
func (r Recipe) EncodePolicy() fp8.Policy {
	p, own := r.Policy, r.Profile.Policy(r.Format)
	if p.Overflow == 0 {
		p.Overflow = own.Overflow
	}
	if p.Inf == 0 {
		p.Inf = own.Inf
	}
	if p.NaN == 0 {
		p.NaN = own.NaN
	}
	if p.Zero == 0 {
		p.Zero = own.Zero
	}
	if p.Rounding == 0 {
		p.Rounding = own.Rounding
	}
	return p
}
