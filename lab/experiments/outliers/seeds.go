package outliers

import (
	"context"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

// seedFigures are what a seed shows: of its weights, its batches and nothing else, so that
// seeds are independent but for the text.
type seedFigures struct {
	seed uint64

	decayed, free []alignment // over training, with weight decay and without
	growing, calm course      // from the decayed weights on
	runs          []course    // trained under the arms that are, in their order
}

// course is how training went on in the window of late scales, under an arm or in FP32.
type course struct {
	name    string
	losses  []float64   // of each step's batch, in both windows
	heldOut []float64   // of the steps that are looked at
	amax    [][]float64 // by step and layer: largest |z|
	arms    [][]fidelity

	// under are held-out losses of the same weights, with inputs quantized as the arms do of
	// which the loss is taken: by arm and look.
	under [][]float64
}

// seedRun is a seed at work.
type seedRun struct {
	*study
	setup training.Setup
	seed  uint64

	config nn.Config
	base   *nn.Llama
}

func (s *study) doSeed(ctx context.Context, f *seedFigures, setup training.Setup, workers int) (err error) {
	p := s.plan
	config := training.Llama(p.dim, p.layers, p.seq)
	config.Hidden, config.Workers = p.hidden, workers
	r := &seedRun{study: s, setup: setup, seed: f.seed, config: config}
	if f.free, err = r.train(ctx, 0); err != nil {
		return err
	}
	if f.decayed, err = r.train(ctx, trainingDecay); err != nil {
		return err
	}
	if f.calm, err = r.goOn(ctx, arm{name: "FP32"}, false); err != nil {
		return err
	}
	if f.growing, err = r.goOn(ctx, arm{name: "FP32"}, true); err != nil {
		return err
	}
	for _, a := range arms() {
		if !a.trained {
			continue
		}
		c, err := r.goOn(ctx, a, true)
		if err != nil {
			return err
		}
		f.runs = append(f.runs, c)
	}
	return nil
}

// looks is how often the alignment is looked at.
const looks = 6

// train trains from the seed's first weights in FP32, and leaves the model in base.
func (r *seedRun) train(ctx context.Context, decay float64) (all []alignment, err error) {
	run, err := trial.New("FP32", r.config, r.seed)
	if err != nil {
		return nil, err
	}
	run.Optimizer.WeightDecay = decay
	probe, _, err := r.setup.Corpus.HeldOut(0, r.plan.batch, r.plan.seq)
	if err != nil {
		return nil, err
	}
	look := func(step int) error {
		layers, err := branchesOf(ctx, run.Model, probe, r.plan.batch, r.plan.seq)
		all = append(all, alignmentOf(run.Model, step, layers)...)
		return err
	}
	warmup := r.plan.base / 10
	for step := range r.plan.base {
		if step%(r.plan.base/looks) == 0 {
			if err := look(step); err != nil {
				return nil, err
			}
		}
		if _, err := r.setup.Step(ctx, run, step, warmed(trainingRate, step, warmup)); err != nil {
			return nil, err
		}
		if err := r.progress.Done(ctx, "training", 1); err != nil {
			return nil, err
		}
	}
	r.base = run.Model
	return all, look(r.plan.base)
}

// warmed is a rate that is reached after a number of steps.
func warmed(rate float64, step, warmup int) float64 {
	return rate * min(1, float64(step+1)/float64(warmup))
}

// goOn trains on from base for two windows: one at the rate and decay before, in which all
// scales settle, and one in which the late ones stay and, if weights are to grow, they are
// fine-tuned. Moments of the optimizer begin anew with each window. The zero arm is FP32, which gives what it meets to all arms.
func (r *seedRun) goOn(ctx context.Context, a arm, growing bool) (course, error) {
	c := course{name: a.name}
	config := r.config
	if a.trained {
		config.FP8, config.Smoothing = a.recipes(), a.smoother()
	}
	run, err := trial.New(a.name, config, r.seed)
	if err != nil {
		return c, err
	}
	copyParams(run.Model, r.base)
	run.Optimizer.WeightDecay = trainingDecay
	var w *witness
	if !a.trained {
		if w, err = r.newWitness(run.Model, growing); err != nil {
			return c, err
		}
	}
	for step := range 2 * r.plan.window {
		rate := trainingRate
		if step >= r.plan.window && growing {
			rate = warmed(tuningRate, step-r.plan.window, tuningWarmup)
		}
		if step == r.plan.window {
			decay := trainingDecay
			if growing {
				decay = tuningDecay
			}
			run = &trial.Run{
				Name: run.Name, Model: run.Model,
				Optimizer: optim.AdamW{Clip: run.Optimizer.Clip, WeightDecay: decay, Workers: config.Workers},
			}
			if !a.renews(step, r.plan.window) {
				run.Window = math.MaxInt
			}
		}
		look := step >= r.plan.window && (step+1)%r.plan.every == 0
		if w != nil {
			if err := w.before(ctx, step); err != nil {
				return c, err
			}
		}
		f, err := r.setup.Step(ctx, run, r.plan.base+step, rate)
		if err != nil {
			return c, err
		}
		c.losses = append(c.losses, f.Loss)
		if w != nil {
			if err := w.after(ctx, &c, step, look); err != nil {
				return c, err
			}
		}
		if look && growing {
			heldOut, err := run.HeldOut(ctx, r.setup.Corpus, r.plan.judged, r.plan.batch, r.plan.seq)
			if err != nil {
				return c, err
			}
			c.heldOut = append(c.heldOut, heldOut)
		}
		if err := r.progress.Done(ctx, a.name, 1); err != nil {
			return c, err
		}
	}
	return c, nil
}

// armIndex returns the place of an arm.
func armIndex(name string) int {
	return slices.IndexFunc(arms(), func(a arm) bool { return a.name == name })
}
