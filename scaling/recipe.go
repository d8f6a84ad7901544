package scaling

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
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
	Policy  fp8.Policy
	Epsilon float32 // a smaller amax is raised to it; te-current and te-block only
	Delayed Delayed // te-delayed only
}

// Default returns the granularity, timing and format of DeepSeek-V3 (arXiv 2412.19437,
// section 3.3) with the power-of-two arithmetic that TransformerEngine has for it:
// E4M3, just in time, 1x128 for activations and gradients, 128x128 for weights. It
// panics if the role is unknown.
//
// It is a recipe for one tensor. DeepSeek-V3 requantizes activations for the weight
// gradient from FP8, whereas nn.DefaultFP8, which has these recipes, quantizes them from
// FP32.
func Default(role Role) Recipe { return TEBlockPow2.Recipe(role) }

// Recipe returns the recipe that p's library uses by default for a role: E4M3
// in the profile's block. It panics if the role is unknown.
func (p Profile) Recipe(role Role) Recipe { return Recipe{Profile: p, Block: p.Block(role)} }

// String returns the profile, format and block, such as
// "te-block-pow2 E4M3 1x128".
func (r Recipe) String() string {
	profile := r.Profile
	if profile == "" {
		profile = TEBlockPow2
	}
	return fmt.Sprintf("%s %v %v", profile, r.Format, r.Block)
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
	case !(r.Epsilon >= 0) || !isFinite(r.Epsilon):
		return sentinel.Errorf(ErrRecipe, "scaling: recipe %v: epsilon %v: want a finite number that is not negative", r, r.Epsilon)
	case r.Epsilon != 0 && !r.Profile.traits().epsilon:
		return sentinel.Errorf(ErrRecipe, "scaling: recipe %v: epsilon %v: this arithmetic has none", r, r.Epsilon)
	}
	if err := r.Policy.Check(); err != nil {
		return fmt.Errorf("scaling: recipe %v: %w", r, err)
	}
	return r.Delayed.check()
}

const noScale = "scaling: recipe is delayed or unknown: amax alone gives no scale"

// Scale returns the scale of a block under a just-in-time recipe, from the
// largest magnitude among its float32 values. A NaN amax stands for a block
// with a NaN in it. It panics if the recipe is delayed or unknown.
func (r Recipe) Scale(amax float32) fp8.Scale {
	t := r.Profile.traits()
	if t == nil || t.delayed {
		panic(noScale)
	}
	nan := amax != amax
	if nan {
		amax = 0
	}
	return t.blockScale(amax, nan, r.limits(math.MaxFloat32))
}

func (r Recipe) limits(source float32) limits {
	return limits{max: r.Format.Max(), source: source, epsilon: r.Epsilon}
}
