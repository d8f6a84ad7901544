package sensitivity

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/train"
)

// study is what is done with each seed.
type study struct {
	config    nn.Config
	common    int // steps in FP32 before arms part
	apart     int // steps of each arm
	warmup    int // of those
	sequences int // in a batch
	judged    int // held-out batches
	batches   int // of which gradients are compared
	rate      float64
}

func studyOf(o lab.Options) study {
	pick := func(full, look, short int) int { return lab.Pick(o, full, look, short) }
	return study{
		config: nn.Config{
			Vocab: 256, Dim: pick(384, 384, 32), Layers: pick(2, 2, 1), Heads: pick(6, 6, 2),
			Hidden: pick(512, 512, 48), Context: pick(128, 128, 16),
		},
		common:    pick(150, 60, 3),
		apart:     pick(30, 6, 2),
		warmup:    5,
		sequences: pick(3, 3, 2),
		judged:    pick(24, 6, 2),
		batches:   pick(6, 2, 2),
		rate:      1e-3,
	}
}

// found is what came of a seed.
type found struct {
	seed   uint64
	common []float64 // losses of the common steps
	arms   []result
}

// result is what came of an arm.
type result struct {
	before, after float64         // held-out loss before and after the arm's own steps
	losses        []float64       // of these
	skipped       int             // of these, whose gradient was not finite
	gradients     []gradientError // of each parameter
}

// Units of progress: about a forward pass.
const passUnits = 3

// work is that of a seed.
func (s study) work() int64 {
	return int64(passUnits*s.common + len(arms())*(2*s.judged+passUnits*(s.apart+s.batches)))
}

// seedRun is a seed at work.
type seedRun struct {
	study
	in   training.Setup
	seed uint64
	base *nn.Llama // where arms part, in FP32
	done func(what string, units int) error
}

// seed does all that is done with one.
func (s study) seed(ctx context.Context, o lab.Options, p *lab.Steps) (f found, err error) {
	s.config.Workers = o.Workers
	in, err := training.NewSetup(o, o.Seed, training.Setup{
		Steps: s.common + s.apart, Batch: s.sequences, Seq: s.config.Context,
		Rate: s.rate, Judged: s.judged,
	})
	if err != nil {
		return f, err
	}
	r := &seedRun{study: s, in: in, seed: o.Seed, done: func(what string, units int) error {
		return p.Done(ctx, fmt.Sprintf("%s, seed %d", what, o.Seed), int64(units))
	}}
	f.seed = o.Seed
	if f.common, err = r.train(ctx); err != nil {
		return f, err
	}
	f.arms = make([]result, len(arms()))
	for i, a := range arms() {
		if err := r.goOn(ctx, a, &f.arms[i]); err != nil {
			return f, fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return f, r.compare(ctx, f.arms)
}

// train does the common steps.
func (r *seedRun) train(ctx context.Context) (losses []float64, err error) {
	run, err := trial.New("FP32", r.config, r.seed)
	if err != nil {
		return nil, err
	}
	r.base = run.Model
	schedule := r.in.Schedule()
	for step := range r.common {
		f, err := r.in.Step(ctx, run, step, schedule.At(step))
		if err != nil {
			return nil, err
		}
		losses = append(losses, f.Loss)
		if err := r.done("FP32", passUnits); err != nil {
			return nil, err
		}
	}
	return losses, nil
}

// model returns that of an arm where arms part.
func (r *seedRun) model(a arm) (*trial.Run, error) {
	config := r.config
	a.use(&config)
	model, err := training.Twin(r.base, config)
	return &trial.Run{
		Name: a.name, Model: model,
		Optimizer: optim.AdamW{Clip: 1, WeightDecay: 0.1, Workers: config.Workers},
	}, err
}

// goOn trains an arm on, with moments that begin anew in all of them.
func (r *seedRun) goOn(ctx context.Context, a arm, to *result) error {
	run, err := r.model(a)
	if err != nil {
		return err
	}
	if to.before, err = r.heldOut(ctx, run); err != nil {
		return err
	}
	schedule := r.in.Schedule()
	for step := range r.apart {
		b, err := r.in.At(r.common + step)
		if err != nil {
			return err
		}
		rate := schedule.At(r.common+step) * min(1, float64(step+1)/float64(r.warmup))
		f, skip, err := run.StepOrSkip(ctx, b.Tokens, b.Targets, b.Sequences, b.Seq, rate, nil)
		if err != nil {
			return err
		}
		if skip != nil {
			to.skipped++
		}
		to.losses = append(to.losses, f.Loss)
		if err := r.done(a.name, passUnits); err != nil {
			return err
		}
	}
	to.after, err = r.heldOut(ctx, run)
	return err
}

// heldOut returns the loss on held-out text of logits in the arm's arithmetic. The loss of
// these is FP32: with sums that are too small it would be too small itself, and a model seem
// better the worse it adds.
func (r *seedRun) heldOut(ctx context.Context, run *trial.Run) (float64, error) {
	measure := nn.CrossEntropy{Workers: r.config.Workers}
	seq := r.config.Context
	of := func(ctx context.Context, i int) (float32, error) {
		tokens, targets, err := r.in.Corpus.HeldOut(i, r.sequences, seq)
		if err != nil {
			return 0, err
		}
		logits, err := run.Model.Logits(ctx, tokens, r.sequences, seq)
		if err != nil {
			return 0, err
		}
		return measure.Forward(ctx, logits, targets, r.config.Vocab)
	}
	loss, err := train.Evaluate(ctx, run.Model, r.judged, of)
	if err != nil {
		return 0, err
	}
	return training.AtMostUniform(loss, r.config.Vocab), r.done(run.Name, r.judged)
}

// compare compares the gradients of all arms where they part with those of FP32.
func (r *seedRun) compare(ctx context.Context, to []result) error {
	for i := range r.batches {
		b, err := r.in.At(r.common + i)
		if err != nil {
			return err
		}
		if _, err := b.Gradients(ctx, r.base); err != nil {
			return err
		}
		for j, a := range arms() {
			run, err := r.model(a)
			if err != nil {
				return err
			}
			if _, err := b.Gradients(ctx, run.Model); err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
			to[j].count(run.Model.Params(), r.base.Params())
			if err := r.done("gradients", passUnits); err != nil {
				return err
			}
		}
	}
	return nil
}

// count adds the errors of a batch.
func (to *result) count(got, want []*nn.Param) {
	if to.gradients == nil {
		to.gradients = make([]gradientError, len(want))
	}
	for i, p := range want {
		to.gradients[i].add(got[i].Grad, p.Grad)
	}
}

// gradientError is how far gradients of a parameter are from those of FP32, over batches: by
// sums over all of their values, so that a batch whose gradient nearly vanishes counts as
// little as it is.
type gradientError struct {
	off   float64 // squares of the differences
	got   float64 // squares
	want  float64 // squares of FP32's
	along float64 // products of the differences with FP32's
}

// add counts the gradients of a batch.
func (e *gradientError) add(got, want []float32) {
	for i, v := range want {
		x, y := float64(got[i]), float64(v)
		d := x - y
		e.off += float64(d * d)
		e.got += float64(x * x)
		e.want += float64(y * y)
		e.along += float64(d * y)
	}
}

// relative is the length of the error over that of FP32's gradient; 0 if that is zero, as the
// other figures are.
func (e gradientError) relative() float64 {
	if e.want == 0 {
		return 0
	}
	return math.Sqrt(e.off / e.want)
}

// distance is 1 less the cosine of the angle between both, and 1 if nothing is left of one.
func (e gradientError) distance() float64 {
	switch {
	case e.want == 0:
		return 0
	case e.got == 0:
		return 1
	}
	return 1 - (e.want+e.along)/math.Sqrt(e.got*e.want)
}

// bias is the projection of the gradient on FP32's, less 1.
func (e gradientError) bias() float64 {
	if e.want == 0 {
		return 0
	}
	return e.along / e.want
}
