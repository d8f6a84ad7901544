// Package outliers asks which scales survive the outliers of SwiGLU.
package outliers

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
	"github.com/octavo-fp8/octavo/cmd/internal/trial"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

// Experiment is octavo lab outliers.
var Experiment = lab.Experiment{
	Name:  "outliers",
	Title: "SwiGLU's outliers: which scales lose them?",
	Claim: "With weight decay the two branches of a SwiGLU neuron align, w1 = ±w2, so that it becomes quadratic in its input; " +
		"late in training a few channels of a few tokens grow far beyond what a delayed scale has seen, and FP8 training diverges. " +
		"Smooth-SwiGLU, which divides each channel by its linear branch, mends it (Fishman et al., arXiv 2409.12517).",
	Measure: measure,
}

// plan is how large and how long everything is.
type plan struct {
	dim, layers int
	neurons     int // of each layer that become outliers
	base, heal  int // steps of training before, and after the neurons were aligned
	window      int // steps from one refresh of a late scale to the next
	growth      int // steps, from the beginning of the second window, in which gains grow
	windows     int
	every       int // steps from one held-out loss to the next
}

const (
	// grownGain is what the gain of each chosen neuron grows to inside a window. A
	// margin of 2^lateMargin has room for what grows with the gain, with a third to
	// spare for the difference between batches, but not for what grows with its square.
	grownGain  = 12
	lateMargin = 4

	// Rates fall from the first to the last, which they keep while outliers grow: these
	// appear late.
	firstRate = 3e-3
	lastRate  = 3e-5
)

func newPlan(o lab.Options) plan {
	if o.Length == lab.Short {
		return plan{dim: 32, layers: 1, neurons: 6, base: 40, heal: 4, window: 8, growth: 6, windows: 3, every: 4}
	}
	return plan{dim: 128, layers: 2, neurons: 16, base: 400, heal: 30, window: 24, growth: 16, windows: 3, every: 4}
}

func (p plan) steps() int { return p.windows * p.window }

func (p plan) schedule() optim.Schedule {
	return optim.Schedule{Peak: firstRate, Final: lastRate / firstRate, Warmup: p.base / 10, Steps: p.base}
}

// study is the experiment at work.
type study struct {
	options  lab.Options
	progress *lab.Steps
	plan     plan
	setup    training.Setup
	probe    []int32 // the first held-out batch, on which activations are looked at

	base    *trial.Run
	outlier neurons

	untouched []branches // of the model before anything was done to it

	natural []naturalFigures
	aligned []float64 // by how much aligning alone raised max|z| of each neuron
	losses  baseLosses
	law     []gainFigures
	jumps   []jumpFigures
	runs    []*continuation
	real    []realFigures
}

// baseLosses are held-out losses of the model before the runs.
type baseLosses struct{ trained, aligned, healed float64 }

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	s, err := doStudy(ctx, o, p)
	if err != nil {
		return nil, err
	}
	return s.report(), nil
}

func doStudy(ctx context.Context, o lab.Options, p *lab.Steps) (*study, error) {
	s := &study{options: o, progress: p, plan: newPlan(o), runs: continuations(newPlan(o))}
	var err error
	s.setup, err = training.NewSetup(o, o.Seed, training.Setup{Batch: lab.Pick(o, 16, 16, 4), Seq: lab.Pick(o, 64, 64, 32), Judged: 4})
	if err != nil {
		return nil, err
	}
	if s.probe, _, err = s.setup.Corpus.HeldOut(0, s.setup.Batch, s.setup.Seq); err != nil {
		return nil, err
	}
	const realWork = 1
	p.Expect(int64(s.plan.base + s.plan.heal + len(jumpCases())*s.jumpWork() + len(s.runs)*s.plan.steps() + realWork))
	for _, part := range []func(context.Context) error{s.train, s.intervene, s.measureLaw, s.jump, s.continueRuns, s.lookAtReal} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return s, p.Done(ctx, "activations", realWork)
}

// train makes the model that outliers grow in, in FP32, and notes what becomes of its
// neurons without any help.
func (s *study) train(ctx context.Context) error {
	config := training.Llama(s.plan.dim, s.plan.layers, s.setup.Seq)
	config.Workers = s.options.Workers
	var err error
	if s.base, err = trial.New("FP32", config, s.options.Seed); err != nil {
		return err
	}
	const looks = 4
	for step := range s.plan.base {
		if err := s.baseStep(ctx, step, "FP32"); err != nil {
			return err
		}
		if (step+1)%(s.plan.base/looks) == 0 {
			layers, err := s.branches(ctx)
			if err != nil {
				return err
			}
			s.natural = append(s.natural, naturalOf(s.base.Model, step+1, layers)...)
		}
	}
	if s.untouched, err = s.branches(ctx); err != nil {
		return err
	}
	s.losses.trained, err = s.judge(ctx, s.base)
	return err
}

func (s *study) baseStep(ctx context.Context, step int, what string) error {
	if _, err := s.setup.Step(ctx, s.base, step, s.plan.schedule().At(step)); err != nil {
		return err
	}
	return s.progress.Done(ctx, what, 1)
}

func (s *study) branches(ctx context.Context) ([]branches, error) {
	return branchesOf(ctx, s.base.Model, s.probe, s.setup.Batch, s.setup.Seq)
}

func (s *study) judge(ctx context.Context, r *trial.Run) (float64, error) {
	return r.HeldOut(ctx, s.setup.Corpus, s.setup.Judged, s.setup.Batch, s.setup.Seq)
}

// intervene aligns the neurons that matter most, makes them equally large without
// changing what the layer does, and lets the model get used to it.
func (s *study) intervene(ctx context.Context) error {
	m := s.base.Model
	before, err := s.branches(ctx)
	if err != nil {
		return err
	}
	s.outlier = mattering(m, before, s.plan.neurons)
	s.outlier.align(m)
	after, err := s.branches(ctx)
	if err != nil {
		return err
	}
	was := s.outlier.largest(before, nil)
	for layer, amax := range s.outlier.largest(after, nil) {
		for i, a := range amax {
			s.aligned = append(s.aligned, a/was[layer][i])
		}
	}
	s.outlier.level(m, after)
	if s.losses.aligned, err = s.judge(ctx, s.base); err != nil {
		return err
	}
	for step := range s.plan.heal {
		if err := s.baseStep(ctx, s.plan.base+step, "aligned"); err != nil {
			return err
		}
	}
	s.losses.healed, err = s.judge(ctx, s.base)
	return err
}

// grown returns the weights after healing with all gains grown by a factor, in dst.
func (s *study) grown(dst *nn.Llama, factor float64) {
	copyParams(dst, s.base.Model)
	s.outlier.grow(dst, factor)
}

// where says in which text and of which size the runs are, for people.
func (s *study) where() string {
	return fmt.Sprintf("%d parameters, %d steps of %d bytes", s.base.Params(), s.plan.base+s.plan.heal+s.plan.steps(), s.setup.Batch*s.setup.Seq)
}
