// Package parity asks how far FP8 training is from that of BF16 and FP32: by its loss as far
// as that can tell, and by its gradients.
package parity

import (
	"context"
	_ "embed"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/scaling"
)

//go:embed declaration.toml
var declarationFile []byte

// declared is what goals are judged by.
var declared = declaration.OnUse(declarationFile)

// Experiment is octavo lab parity.
var Experiment = lab.Experiment{
	Name:  "parity",
	Title: "Does FP8 training lose anything, and would this show it?",
	Claim: "With fine-grained scales, 1x128 for activations and gradients and 128x128 " +
		"for weights, E4M3 throughout and amax just in time, the loss of FP8 training stays within " +
		"0.25 % of BF16 training (DeepSeek-V3, arXiv 2412.19437, section 3.3 and appendix B.1).",
	Declaration: declared,
	Measure:     measure,
}

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	s, seeds := studyOf(o), lab.Pick(o, 8, 2, 2)
	r := &results{study: s}
	var err error
	if o.Activations != nil {
		if r.real, err = realWidths(o.Activations); err != nil {
			return nil, err
		}
	}
	p.Expect(int64(seeds) * s.work())
	r.seeds, err = training.Seeds(ctx, o, seeds, func(ctx context.Context, o lab.Options) (found, error) { return s.seed(ctx, o, p) })
	if err != nil {
		return nil, err
	}
	r.weights = r.seeds[0].weights
	return r.report(), nil
}

// arm is a way to multiply in linear layers.
type arm struct {
	name    string
	control bool // it must be caught
	stale   bool // its scales are of before the spread
	use     func(c *nn.Config, seed uint64)
	moments optim.MomentFormat // of the optimizer, of the arm's own steps
}

// named returns a use of a recipe that has a name, without some of its parts.
func named(name string, without ...nn.Part) func(*nn.Config, uint64) {
	return func(c *nn.Config, seed uint64) {
		r, err := nn.ParseRecipe(name)
		if err != nil {
			panic(err)
		}
		r.Without(without...).Apply(c, seed)
	}
}

func operandsOf(f nn.FP8, change func(*scaling.Recipe)) nn.FP8 {
	for _, o := range []*nn.Operands{&f.Forward, &f.InputGradient, &f.WeightGradient} {
		change(&o.A)
		change(&o.B)
	}
	return f
}

// inFP8 returns a use of the default recipes after a change.
func inFP8(change func(*scaling.Recipe)) func(*nn.Config, uint64) {
	return func(c *nn.Config, _ uint64) {
		f := operandsOf(nn.DefaultFP8(), change)
		c.FP8 = &f
	}
}

// Arms by their index.
const (
	fp32Arm = iota
	bf16Arm
	fp8Arm
	deepSeekArm
	e5m2Arm
	truncatedArm
	staleArm
	fp4Arm
)

func arms() []arm {
	return []arm{
		{name: "FP32", use: func(*nn.Config, uint64) {}},
		{name: "BF16", use: func(c *nn.Config, _ uint64) { training.BF16().Use(c) }},
		{name: "FP8", use: inFP8(func(*scaling.Recipe) {})},
		{name: "DeepSeek-V3", use: named("deepseek-v3"), moments: optim.MomentsBF16},
		{name: "E5M2 per tensor", control: true, use: inFP8(func(r *scaling.Recipe) {
			*r = scaling.Recipe{Profile: scaling.TECurrent, Format: fp8.E5M2}
		})},
		{name: "truncated", control: true, use: inFP8(func(r *scaling.Recipe) {
			r.Policy.Rounding = fp8.TowardZero
		})},
		{name: "stale scales", control: true, stale: true, use: inFP8(func(r *scaling.Recipe) {
			*r = scaling.Recipe{Profile: scaling.TEDelayed, Format: fp8.E4M3}
		})},
		{name: "bare FP4", control: true, use: named("nvfp4", nn.Parts()...)},
	}
}

// addition is a way to add the products of operands.
type addition struct {
	name     string
	multiply multiplier
}

// Additions by their index.
const (
	inFP32 = iota
	promoted
	notPromoted
)

func additions() []addition {
	return []addition{
		{"FP32, octavo's order", canonical},
		{"Hopper, promoted every 128", kernel(oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128})},
		{"Hopper, not promoted", kernel(oracle.Kernel{Model: oracle.HopperWGMMA()})},
	}
}

// wholeFP8 has one scale for each operand, so that a sum may stay in a tensor core from its
// first product to its last; blocks along the sum would promote it.
func wholeFP8() nn.FP8 {
	return operandsOf(nn.DefaultFP8(), func(r *scaling.Recipe) {
		*r = scaling.Recipe{Profile: scaling.TECurrent, Format: fp8.E4M3}
	})
}
