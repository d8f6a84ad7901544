package outliers

import (
	"context"
	"math"

	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/nn"
)

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
		copyParams(f.Model, w.model)
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
		copyParams(f.Model, w.model)
		loss, err := f.HeldOut(ctx, w.setup.Corpus, w.plan.judged, w.plan.batch, w.plan.seq)
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
