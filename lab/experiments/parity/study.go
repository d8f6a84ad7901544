package parity

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/experiments/parity/reference"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/train"
)

// study is what is done with each seed.
type study struct {
	plan
	batches int // of gradients at the weights where arms part
	walk    int // steps in FP32 over which errors of gradients add up
}

func studyOf(o lab.Options) study {
	pick := func(full, look, short int) int { return lab.Pick(o, full, look, short) }
	return study{
		plan: plan{
			config: nn.Config{
				Vocab: 256, Dim: pick(384, 384, 32), Layers: pick(2, 2, 1), Heads: pick(6, 6, 2),
				Hidden: pick(512, 512, 48), Context: pick(128, 128, 16),
			},
			form:      spreadForm{deviation: 0.5, outliers: 0.01, outlier: 32},
			common:    pick(150, 60, 3),
			apart:     pick(30, 10, 2),
			sequences: pick(3, 3, 2),
			rate:      1e-3,
			judged:    pick(32, 8, 2),
		},
		batches: pick(8, 2, 2),
		walk:    pick(8, 2, 2),
	}
}

// found is what came of a seed.
type found struct {
	seed uint64
	root []float64 // losses of the common steps

	plain, spread widths   // of operands, without and with a spread
	weights       []string // whose gradients are compared

	arms  []result // by arm
	fixed []map[string]layerError
	walk  []map[string]layerError
	added [][]additionError // by product and way
}

// Units of progress: about the time of a pass in FP32 forward and back.
const (
	forwardUnits = 1
	passUnits    = 3
	exactUnits   = 40
	kernelUnits  = 55
)

// work is that of a seed.
func (s study) work() int64 {
	perArm := 2*s.judged*forwardUnits + s.apart*passUnits
	sources := len(arms())
	return int64(s.common*passUnits + len(arms())*perArm +
		(s.batches+s.walk)*(exactUnits+sources*passUnits) + addingUnits())
}

func addingUnits() int { return exactUnits + len(additions())*kernelUnits }

// seed does all that is done with one.
func (s study) seed(ctx context.Context, o lab.Options, p *lab.Steps) (f found, err error) {
	seed, workers := o.Seed, o.Workers
	f.seed = seed
	form := training.Setup{Judged: s.judged, Batch: s.sequences, Seq: s.config.Context}
	in, err := training.NewSetup(o, seed, form)
	if err != nil {
		return f, err
	}
	c := in.Corpus
	done := func(what string, units int) error {
		return p.Done(ctx, fmt.Sprintf("%s, seed %d", what, seed), int64(units))
	}
	root, err := s.root(ctx, c, seed, workers, func(loss float64) error {
		f.root = append(f.root, loss)
		return done("FP32", passUnits)
	})
	if err != nil {
		return f, err
	}
	for _, a := range arms() {
		t, err := s.part(ctx, root, a, c, seed, workers)
		if err != nil {
			return f, fmt.Errorf("%s: %w", a.name, err)
		}
		r, err := s.goOn(ctx, t, c, func(units int) error { return done(a.name, units) })
		if err != nil {
			return f, fmt.Errorf("%s: %w", a.name, err)
		}
		f.arms = append(f.arms, r)
	}
	g := &gradientStudy{study: s, corpus: c, done: done}
	if err := g.start(ctx, root, seed, workers); err != nil {
		return f, err
	}
	f.weights = g.weights
	b, err := g.batch(0)
	if err != nil {
		return f, err
	}
	if f.plain, err = root.widths(ctx, b); err != nil {
		return f, err
	}
	if f.spread, err = g.base.widths(ctx, b); err != nil {
		return f, err
	}
	if f.added, err = g.additions(ctx); err != nil {
		return f, err
	}
	if f.fixed, err = g.fixed(ctx); err != nil {
		return f, err
	}
	f.walk, err = g.walked(ctx)
	return f, err
}

// gradientStudy is of the gradients of a seed's arms.
type gradientStudy struct {
	study
	corpus *train.Corpus
	done   func(what string, units int) error

	base    *trainee // in FP32, with the spread
	exact   source
	sources []source // of arms
	weights []string
}

func (g *gradientStudy) start(ctx context.Context, root *trainee, seed uint64, workers int) error {
	for i, a := range arms() {
		t, err := g.part(ctx, root, a, g.corpus, seed, workers)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		if i == fp32Arm {
			g.base = t
			continue
		}
		g.sources = append(g.sources, t.source())
	}
	g.exact = g.base.inFloat64(reference.Exact)
	g.weights = weightsOf(g.base.masters)
	return nil
}

// batch returns one of those after the common steps.
func (g *gradientStudy) batch(i int) (batch, error) { return g.plan.batch(g.corpus, g.common+i) }

// fixed measures gradients of batches at the weights where arms part.
func (g *gradientStudy) fixed(ctx context.Context) ([]map[string]layerError, error) {
	return g.errors(ctx, g.sources, g.batches, func(int) error {
		return g.done("gradients", exactUnits+(1+len(g.sources))*passUnits)
	})
}

// walked measures gradients along steps in FP32.
func (g *gradientStudy) walked(ctx context.Context) ([]map[string]layerError, error) {
	schedule := g.setup(g.corpus).Schedule()
	return g.errors(ctx, g.sources, g.walk, func(i int) error {
		b, err := g.batch(i)
		if err != nil {
			return err
		}
		if _, err := g.base.step(ctx, b, schedule.At(g.common+i)); err != nil {
			return err
		}
		for _, s := range append(g.sources, g.exact) {
			s.follow(g.base.masters)
		}
		return g.done("gradients of steps", exactUnits+(1+len(g.sources))*passUnits)
	})
}

// additions measures what ways to add do to the products of a pass, by product and way.
func (g *gradientStudy) additions(ctx context.Context) ([][]additionError, error) {
	n := &narrow{recipes: wholeFP8(), ways: additions()}
	b, err := g.batch(0)
	if err != nil {
		return nil, err
	}
	if _, err := g.base.inFloat64(n.multiply).gradient(ctx, b); err != nil {
		return nil, err
	}
	return n.found, g.done("additions", addingUnits())
}

// errors measures those of sources over batches, and calls after each what comes next.
func (g *gradientStudy) errors(ctx context.Context, sources []source, batches int,
	after func(i int) error,
) ([]map[string]layerError, error) {
	e := newErrors(g.weights, sources)
	for i := range batches {
		b, err := g.batch(i)
		if err != nil {
			return nil, err
		}
		if err := e.add(ctx, b, g.exact, sources); err != nil {
			return nil, err
		}
		if err := after(i); err != nil {
			return nil, err
		}
	}
	return e.results(), nil
}

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
	return p.setup(c).At(step)
}

func (p plan) setup(c *train.Corpus) training.Setup {
	return training.Setup{
		Corpus: c, Steps: p.common + p.apart, Batch: p.sequences, Seq: p.config.Context, Rate: p.rate, Judged: p.judged,
	}
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
	return p.setup(c).HeldOut(ctx, t.model)
}
