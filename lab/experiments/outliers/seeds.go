package outliers

import (
	"context"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/lab/statistics"
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
	training.CopyWeights(run.Model, r.base)
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
			heldOut, err := r.setup.HeldOut(ctx, run.Model)
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

// witness gives what a model in training meets to all arms, whose results do not come back:
// they are compared on the same tensors, and on the same weights.
type witness struct {
	*seedRun
	model    *nn.Llama
	layers   []branches   // what its SwiGLUs were given last
	down     [][]float32  // by layer, of the beginning of the step
	encoders [][]*encoder // by layer and arm

	followers []follower
}

// follower is a model with the weights of another, whose inputs are quantized.
type follower struct {
	*trial.Run
	of arm
}

// newWitness returns one of a model, whose tap it takes. With losses it takes those too.
func (r *seedRun) newWitness(m *nn.Llama, losses bool) (*witness, error) {
	w := &witness{seedRun: r, model: m, layers: watch(m)}
	w.down, w.encoders = make([][]float32, len(w.layers)), make([][]*encoder, len(w.layers))
	for _, a := range arms() {
		for layer := range w.layers {
			e, err := newEncoder(a)
			if err != nil {
				return nil, err
			}
			w.encoders[layer] = append(w.encoders[layer], e)
		}
		if !losses || !a.loss {
			continue
		}
		config := r.config
		config.FP8, config.Smoothing = a.recipes(), a.smoother()
		run, err := trial.New(a.name, config, r.seed)
		if err != nil {
			return nil, err
		}
		w.followers = append(w.followers, follower{run, a})
	}
	return w, nil
}

// before keeps the weights that a step begins with, and shows followers its batch.
func (w *witness) before(ctx context.Context, step int) error {
	for layer := range w.down {
		w.down[layer] = append(w.down[layer][:0], mlpOf(w.model, layer).down.Value...)
	}
	tokens, targets, err := w.setup.Corpus.Batch(w.plan.base+step, w.plan.batch, w.plan.seq)
	if err != nil {
		return err
	}
	for _, f := range w.followers {
		if f.of.timing == justInTime || !f.of.renews(step, w.plan.window) {
			continue
		}
		training.CopyWeights(f.Model, w.model)
		if _, err := f.Model.Loss(ctx, tokens, targets, w.plan.batch, w.plan.seq); err != nil {
			return err
		}
		f.Model.EndStep()
	}
	return nil
}

// after encodes what the step met under all arms, and notes in c what came of it.
func (w *witness) after(ctx context.Context, c *course, step int, look bool) error {
	amax := make([]float64, len(w.layers))
	all := make([]fidelity, len(arms()))
	n := float64(len(w.layers))
	for layer, b := range w.layers {
		amax[layer] = largestMagnitude(b.plain())
		p := projection{w.down[layer], b.channels}
		var output float64
		if look {
			output = p.norm(b.plain())
		}
		for i, e := range w.encoders[layer] {
			renews := e.of.renews(step, w.plan.window)
			if !look && !renews {
				continue
			}
			lost, f, err := e.encode(ctx, b)
			if err != nil {
				return err
			}
			if renews {
				e.renew()
			}
			if !look {
				continue
			}
			f.output = p.norm(lost) / output
			all[i].add(f, n)
		}
	}
	c.amax = append(c.amax, amax)
	if !look {
		return nil
	}
	for i := range all {
		all[i].input, all[i].output = math.Sqrt(all[i].input), math.Sqrt(all[i].output)
	}
	c.arms = append(c.arms, all)
	return w.losses(ctx, c)
}

// add adds the figures of one of n layers: shares, the largest reach, and the squares of
// errors.
func (f *fidelity) add(layer fidelity, n float64) {
	f.saturated += layer.saturated / n
	f.flushed += layer.flushed / n
	f.reach = max(f.reach, layer.reach)
	f.input += float64(layer.input*layer.input) / n
	f.output += float64(layer.output*layer.output) / n
}

// losses takes held-out losses of the weights after the step.
func (w *witness) losses(ctx context.Context, c *course) error {
	for i, f := range w.followers {
		training.CopyWeights(f.Model, w.model)
		loss, err := w.setup.HeldOut(ctx, f.Model)
		if err != nil {
			return err
		}
		if len(c.under) <= i {
			c.under = append(c.under, nil)
		}
		c.under[i] = append(c.under[i], loss)
	}
	return nil
}

// givenFigures are those of a layer of a real model, of the activations of the options. They
// are of one model and one text: figures to look at, of which nothing is judged.
type givenFigures struct {
	name     string
	amax     float64   // largest |z|
	median   float64   // median |z|
	halves   float64   // largest |z| of the second half of the tokens over that of the first
	channels []float64 // largest |z| of each, the largest first

	// Of the second half of the tokens, in the order of arms. Delayed scales are those of the
	// first half, as if they were the step before.
	arms []fidelity
}

// lookAtGiven does so with the activations of the options, if there are any.
func (s *study) lookAtGiven(ctx context.Context) error {
	if s.options.Activations == nil {
		return nil
	}
	layers, err := branchesIn(s.options.Activations)
	if err != nil {
		return err
	}
	for _, b := range layers {
		f, err := givenOf(ctx, b)
		if err != nil {
			return err
		}
		s.given = append(s.given, f)
	}
	return nil
}

func givenOf(ctx context.Context, b branches) (givenFigures, error) {
	half := b.tokens() / 2
	past, present := b.rows(0, half), b.rows(half, 2*half)
	z := b.plain()
	f := givenFigures{
		name: b.name, amax: largestMagnitude(z), median: statistics.Median(magnitudes(z)), channels: channelAmax(z, b.channels),
		halves: largestMagnitude(present.plain()) / largestMagnitude(past.plain()),
	}
	slices.Sort(f.channels)
	slices.Reverse(f.channels)
	for _, a := range arms() {
		e, err := newEncoder(a)
		if err != nil {
			return f, err
		}
		if _, _, err := e.encode(ctx, past); err != nil {
			return f, err
		}
		e.renew()
		_, found, err := e.encode(ctx, present)
		if err != nil {
			return f, err
		}
		f.arms = append(f.arms, found)
	}
	return f, nil
}

// decibels is how far a signal is above its noise, from the share of the noise.
func decibels(noise float64) float64 { return -20 * math.Log10(noise) }
