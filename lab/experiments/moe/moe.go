// Package moe asks whether a mixture of experts trains in FP8 as it does in BF16: by its
// loss, by how tokens are shared out among experts, and by what FP8 makes of each expert.
package moe

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/tensor"
)

//go:embed declaration.toml
var declarationFile []byte

// declared is what goals are judged by.
var declared = declaration.OnUse(declarationFile)

// Experiment is octavo lab moe.
var Experiment = lab.Experiment{
	Name:  "moe",
	Title: "Does a mixture of experts train in FP8 as in BF16?",
	Claim: "A mixture of experts with latent attention trains in FP8 within 0.25 % of BF16's loss, " +
		"its router in higher precision and its gradients in tiles of 1x128 (DeepSeek-V3, " +
		"arXiv 2412.19437, section 3.3 and appendix B); biases balance its experts without a loss " +
		"(arXiv 2408.15664).",
	Declaration: declared,
	Measure:     measure,
}

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	s, seeds := studyOf(o), lab.Pick(o, 16, 2, 2)
	p.Expect(int64(seeds) * s.work())
	all, err := training.Seeds(ctx, o, seeds, func(ctx context.Context, o lab.Options) (found, error) { return s.seed(ctx, o, p) })
	if err != nil {
		return nil, err
	}
	r := &results{study: s, seeds: all}
	return r.report(), nil
}

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
		{name: "BF16", use: training.BF16().Use},
		{name: "FP8", use: named("fp8"), heard: true},
		{name: "DeepSeek-V3", use: named("deepseek-v3"), moments: optim.MomentsBF16},
		{name: "MXFP8", use: named("mxfp8")},
		{name: "FP8, delayed scales", heard: true, use: func(c *nn.Config) {
			f := nn.ProfileFP8(scaling.TEDelayed, fp8.E4M3)
			c.FP8 = &f
		}},
		{name: "BF16, no biases", use: func(c *nn.Config) {
			training.BF16().Use(c)
			c.Experts.Router.BiasRate = 0
		}},
		{name: "BF16, a rate lower by a fifth", control: true, use: training.BF16().Use, rate: 0.8},
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
		{name: "BF16", use: training.BF16().Use},
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

// study is what is done with each seed.
type study struct {
	tiny    bool // the model of a short run
	steps   int
	batch   int // sequences
	seq     int
	rate    float64
	judged  int // held-out batches
	every   int // steps from one of which operands are recorded to the next
	batches int // of which choices and gradients are compared
}

func studyOf(o lab.Options) study {
	pick := func(full, look, short int) int { return lab.Pick(o, full, look, short) }
	return study{
		tiny:  o.Length == lab.Short,
		steps: pick(300, 50, 3), batch: pick(8, 8, 2), seq: pick(64, 64, 16),
		rate: 1e-3, judged: pick(32, 8, 2), every: pick(10, 5, 1), batches: pick(4, 2, 1),
	}
}

// config returns a small model of DeepSeek-V3's kind in FP32, which shares nothing with
// another: a dense layer, and layers in which a token goes to 2 experts and a shared one,
// together as wide as the dense MLP.
func (s study) config() nn.Config {
	c := nn.Config{
		Vocab: 256, Dim: 128, Layers: 4, Heads: 4, Hidden: 384, Context: s.seq, Dense: 1,
		MLA: &nn.MLAConfig{QueryRank: 64, KVRank: 32, NoPE: 32, RoPE: 16, Value: 32},
		Experts: &nn.ExpertsConfig{Hidden: 128, Shared: 1, Router: nn.RouterConfig{
			Experts: 8, TopK: 2, BiasRate: 0.001, BalanceLoss: 0.0001,
		}},
	}
	if s.tiny {
		c.Dim, c.Layers, c.Heads, c.Hidden = 32, 2, 2, 72
		*c.MLA = nn.MLAConfig{QueryRank: 16, KVRank: 8, NoPE: 16, RoPE: 8, Value: 16}
		c.Experts.Hidden, c.Experts.Router.Experts = 24, 4
	}
	return c
}

// experts returns the number of experts to choose from, and mixtures that of layers with some.
func (s study) experts() int { return s.config().Experts.Router.Experts }

func (s study) mixtures() int {
	c := s.config()
	return c.Layers - c.Dense
}

// late is the first step of the last third, in which loads are judged.
func (s study) late() int { return s.steps - (s.steps+2)/3 }

// found is what came of a seed.
type found struct {
	seed     uint64
	arms     []result     // as arms
	compared []comparison // as compared
	rounded  []roundings  // of FP8's experts at the end, by operand and layer
}

// result is what came of an arm.
type result struct {
	losses  []float64 // of the steps
	skipped int       // of these, whose gradient was not finite
	heldOut float64
	loads   [][][]int // by step and mixture: tokens of each expert
	heard   []heard
}

// Units of progress: about a forward pass.
const passUnits = 3

// work is that of a seed.
func (s study) work() int64 {
	arms := len(arms()) * (s.steps*passUnits + s.judged)
	return int64(arms + s.batches*len(compared())*passUnits)
}

// seedRun is a seed at work.
type seedRun struct {
	study
	in      training.Setup
	seed    uint64
	workers int
	done    func(what string, units int) error
}

// seed does all that is done with one.
func (s study) seed(ctx context.Context, o lab.Options, p *lab.Steps) (f found, err error) {
	in, err := training.NewSetup(o, o.Seed, training.Setup{
		Steps: s.steps, Batch: s.batch, Seq: s.seq, Rate: s.rate, Judged: s.judged,
	})
	if err != nil {
		return f, err
	}
	r := &seedRun{study: s, in: in, seed: o.Seed, workers: o.Workers,
		done: func(what string, units int) error {
			return p.Done(ctx, fmt.Sprintf("%s, seed %d", what, o.Seed), int64(units))
		}}
	f.seed = o.Seed
	f.arms = make([]result, len(arms()))
	var ended *nn.Llama // in BF16
	for i, a := range arms() {
		model, err := r.train(ctx, a, &f.arms[i])
		if err != nil {
			return f, fmt.Errorf("%s: %w", a.name, err)
		}
		switch i {
		case bf16Arm:
			ended = model
		case fp8Arm:
			if f.rounded, err = r.roundings(ctx, model); err != nil {
				return f, err
			}
		}
	}
	f.compared, err = r.compare(ctx, ended)
	return f, err
}

// train trains an arm from its first weights, and returns its model.
func (r *seedRun) train(ctx context.Context, a arm, to *result) (*nn.Llama, error) {
	c := r.config()
	c.Workers = r.workers
	a.use(&c)
	run, err := trial.New(a.name, c, r.seed)
	if err != nil {
		return nil, err
	}
	run.Optimizer.Moments = optim.Moments{Format: a.moments}
	ears := newEars(r.study, to)
	recorder := telemetry.New(ears)
	in := r.in
	if a.rate > 0 {
		in.Rate *= a.rate
	}
	schedule := in.Schedule()
	for step := range r.steps {
		if a.heard && r.listens(step) {
			run.Model.Listen(recorder)
			if err := recorder.Step(int64(step)); err != nil {
				return nil, err
			}
		}
		b, err := in.At(step)
		if err != nil {
			return nil, err
		}
		f, skip, err := run.StepOrSkip(ctx, b.Tokens, b.Targets, b.Sequences, b.Seq, schedule.At(step), nil)
		if err != nil {
			return nil, err
		}
		if skip != nil {
			to.skipped++
		}
		run.Model.Listen(nil)
		to.losses = append(to.losses, f.Loss)
		to.loads = append(to.loads, loadsOf(run.Model))
		if err := r.done(a.name, passUnits); err != nil {
			return nil, err
		}
	}
	if err := recorder.Flush(); err != nil {
		return nil, err
	}
	loss, err := in.HeldOut(ctx, run.Model)
	if err != nil {
		return nil, err
	}
	to.heldOut = training.AtMostUniform(loss, c.Vocab)
	return run.Model, r.done(a.name, r.judged)
}

// listens reports whether operands are recorded in a step: in every so many, and in the last.
func (s study) listens(step int) bool { return step%s.every == 0 || step == s.steps-1 }

// mixturesOf returns the experts of the layers that have some.
func mixturesOf(m *nn.Llama) (all []*nn.Experts) {
	for _, b := range m.Blocks() {
		if b.Experts != nil {
			all = append(all, b.Experts)
		}
	}
	return all
}

// loadsOf returns the tokens of each expert in the last pass, by mixture.
func loadsOf(m *nn.Llama) (all [][]int) {
	for _, x := range mixturesOf(m) {
		all = append(all, slices.Clone(x.Router.Load()))
	}
	return all
}
