package moe

import (
	"context"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/telemetry"
)

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
func (s study) seed(
	ctx context.Context, o lab.Options, p *lab.Steps, seed uint64, workers int,
) (f found, err error) {
	in, err := training.NewSetup(o, seed, training.Setup{
		Steps: s.steps, Batch: s.batch, Seq: s.seq, Rate: s.rate, Judged: s.judged,
	})
	if err != nil {
		return f, err
	}
	r := &seedRun{study: s, in: in, seed: seed, workers: workers,
		done: func(what string, units int) error {
			return p.Done(ctx, fmt.Sprintf("%s, seed %d", what, seed), int64(units))
		}}
	f.seed = seed
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
		tokens, targets, err := r.in.Corpus.Batch(step, r.batch, r.seq)
		if err != nil {
			return nil, err
		}
		f, skip, err := run.StepOrSkip(ctx, tokens, targets, r.batch, r.seq, schedule.At(step), nil)
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
	loss, err := run.HeldOut(ctx, r.in.Corpus, r.judged, r.batch, r.seq)
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
