package moe

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// arm is a way to multiply in linear layers, or to balance experts.
type arm struct {
	name    string
	control bool // it must be caught
	use     func(c *nn.Config)
	moments optim.MomentFormat // of the optimizer
	heard   bool               // its experts' operands are recorded
	rate    float64            // of learning, times that of the others; 0: 1
}

// Trained arms by their index.
const (
	bf16Arm = iota
	fp8Arm
	deepSeekArm
	mxfp8Arm
	delayedArm
	unbalancedArm
	slowerArm
)

// arms are those that are trained, from the same first weights on the same batches.
func arms() []arm {
	return []arm{
		{name: "BF16", use: inBF16},
		{name: "FP8", use: named("fp8"), heard: true},
		{name: "DeepSeek-V3", use: named("deepseek-v3"), moments: optim.MomentsBF16},
		{name: "MXFP8", use: named("mxfp8")},
		{name: "FP8, delayed scales", heard: true, use: func(c *nn.Config) {
			f := nn.ProfileFP8(scaling.TEDelayed, fp8.E4M3)
			c.FP8 = &f
		}},
		{name: "BF16, no biases", use: func(c *nn.Config) {
			inBF16(c)
			c.Experts.Router.BiasRate = 0
		}},
		{name: "BF16, a rate lower by a fifth", control: true, use: inBF16, rate: 0.8},
	}
}

// Compared arms by their index.
const (
	bf16There = iota
	fp8There
	deepSeekThere
	mxfp8There
	e5m2There
	blocksThere
	routerBF16There
	routerE4M3There
	routerE2M1There
)

// compared are those whose choices and gradients are compared with those of FP32, at the
// weights where BF16's training ended.
func compared() []arm {
	return []arm{
		{name: "BF16", use: inBF16},
		{name: "FP8", use: named("fp8")},
		{name: "DeepSeek-V3", use: named("deepseek-v3")},
		{name: "MXFP8", use: named("mxfp8")},
		{name: "E5M2 per tensor", control: true, use: func(c *nn.Config) {
			r := scaling.Recipe{Profile: scaling.TECurrent, Format: fp8.E5M2}
			o := nn.Operands{A: r, B: r}
			c.FP8 = &nn.FP8{Forward: o, InputGradient: o, WeightGradient: o}
		}},
		{name: "FP8, gradients 128x128", use: func(c *nn.Config) {
			f, square := nn.DefaultFP8(), tensor.Block{Rows: 128, Cols: 128}
			f.InputGradient.A.Block, f.WeightGradient.A.Block = square, square
			c.FP8 = &f
		}},
		{name: "FP8, router BF16", use: routedIn(nn.NarrowBF16)},
		{name: "FP8, router E4M3", use: routedIn(nn.NarrowE4M3)},
		{name: "FP8, router E2M1", control: true, use: routedIn(nn.NarrowE2M1)},
	}
}

func inBF16(c *nn.Config) {
	r := nn.DefaultRounding(nn.NarrowBF16)
	c.Rounding = &r
}

// named returns a use of a recipe that has a name.
func named(name string) func(*nn.Config) {
	return func(c *nn.Config) {
		r, err := nn.ParseRecipe(name)
		if err != nil {
			panic(err)
		}
		r.Apply(c, 0) // none of them rounds at random
	}
}

// routedIn multiplies under the default recipe, but in the router operands of a format.
func routedIn(format nn.NarrowFormat) func(*nn.Config) {
	return func(c *nn.Config) {
		named("fp8")(c)
		r := nn.DefaultRounding(format)
		c.Experts.Router.Rounding = &r
	}
}
