package parity

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/train"
)

// plan is what is trained, for how long and on what.
type plan struct {
	config    nn.Config
	form      spreadForm
	common    int // steps in FP32 before arms part
	apart     int // steps of each arm
	sequences int
	rate      float64
	judged    int // held-out batches
}

func (p plan) batch(c *train.Corpus, step int) (batch, error) {
	tokens, targets, err := c.Batch(step, p.sequences, p.config.Context)
	return batch{tokens, targets, p.sequences, p.config.Context}, err
}

func (p plan) setup(c *train.Corpus) training.Setup {
	return training.Setup{Corpus: c, Steps: p.common + p.apart, Rate: p.rate}
}

// root trains the common part of a seed, in FP32, and gives it its spread.
func (p plan) root(ctx context.Context, c *train.Corpus, seed uint64, workers int,
	done func(loss float64) error,
) (*trainee, error) {
	config := p.config
	config.Workers = workers
	t, err := newTrainee("FP32", config, seed)
	if err != nil {
		return nil, err
	}
	schedule := p.setup(c).Schedule()
	for step := range p.common {
		b, err := p.batch(c, step)
		if err != nil {
			return nil, err
		}
		loss, err := t.step(ctx, b, schedule.At(step))
		if err != nil {
			return nil, err
		}
		if err := done(loss); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// part returns the trainee of an arm at the root, with its spread.
func (p plan) part(ctx context.Context, root *trainee, a arm, c *train.Corpus, seed uint64,
	workers int,
) (*trainee, error) {
	config := p.config
	config.Workers = workers
	a.use(&config, seed)
	t, err := root.fork(a.name, config, a.moments)
	if err != nil {
		return nil, err
	}
	if a.stale {
		b, err := p.batch(c, p.common)
		if err != nil {
			return nil, err
		}
		if _, err := t.gradients(ctx, b); err != nil { // scales of 1
			return nil, err
		}
		t.model.EndStep()
		if _, err := t.gradients(ctx, b); err != nil { // gradients that followed from those
			return nil, err
		}
		t.model.EndStep()
	}
	t.spread(newSpreads(config, p.form, seed))
	return t, nil
}

// result is what came of an arm.
type result struct {
	losses        []float64 // of the steps
	before, after float64   // held-out loss before and after them
}

// goOn trains an arm on.
func (p plan) goOn(ctx context.Context, t *trainee, c *train.Corpus,
	done func(units int) error,
) (r result, err error) {
	if r.before, err = p.heldOut(ctx, t, c); err != nil {
		return r, err
	}
	if err := done(p.judged * forwardUnits); err != nil {
		return r, err
	}
	schedule := p.setup(c).Schedule()
	for step := range p.apart {
		b, err := p.batch(c, p.common+step)
		if err != nil {
			return r, err
		}
		loss, err := t.step(ctx, b, schedule.At(p.common+step))
		if err != nil {
			return r, err
		}
		r.losses = append(r.losses, loss)
		if err := done(passUnits); err != nil {
			return r, err
		}
	}
	if r.after, err = p.heldOut(ctx, t, c); err != nil {
		return r, err
	}
	return r, done(p.judged * forwardUnits)
}

// heldOut returns the mean loss on held-out text, in the arm's arithmetic.
func (p plan) heldOut(ctx context.Context, t *trainee, c *train.Corpus) (float64, error) {
	run := trial.Run{Model: t.model}
	return run.HeldOut(ctx, c, p.judged, p.sequences, p.config.Context)
}
