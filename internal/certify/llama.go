package certify

import (
	"context"
	"errors"
	"fmt"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/parallel/layers"
	"github.com/octavo-fp8/octavo/parallel/twin"
	"github.com/octavo-fp8/octavo/train"
)

// replicas trains a Llama by [train.DataParallel], on shards of a sequence each.
func (j *job) replicas(n, workers int) twin.Run {
	return func(ctx context.Context, r *twin.Recorder) error {
		cfg := j.cfg
		cfg.Workers = workers
		m, err := nn.NewLlama(cfg, j.seed)
		if err != nil {
			return err
		}
		d, err := train.NewDataParallel(m, n, m.Replica)
		if err != nil {
			return err
		}
		d.Reducer.Workers = workers
		o := j.optimizer()
		o.Workers = workers
		watch := twin.Watch{Recorder: r, Sequences: 1}
		for step := range j.steps {
			r.Scales(0, m.Shared().Scaling())
			do := twin.Gradients(watch, train.LlamaGradients(j.shards(step, 1), 1, tokens))
			loss, _, err := d.Gradients(ctx, sequences, do)
			if err != nil {
				return err
			}
			recordMean(r, loss)
			r.Means(0, m.Params())
			if _, err := o.Step(ctx, m.Params(), rate); err != nil {
				return err
			}
			m.EndStep()
			r.Weights(0, m.Params())
			if err := r.EndStep(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// recordMean records the loss of a batch.
func recordMean(r *twin.Recorder, loss float32) {
	r.Record(twin.Place{Tensor: "loss.mean", Phase: twin.PhaseMeans}, []float32{loss})
}

// atLevel does a run with the instructions of a level.
func atLevel(l cpu.Level, run twin.Run) twin.Run {
	return func(ctx context.Context, r *twin.Recorder) error {
		restore, err := cpu.Force(l)
		if err != nil {
			return err
		}
		defer restore()
		return run(ctx, r)
	}
}

// zero trains a Llama on ranks that do a shard each, by [layers.Zero], with faults.
func (j *job) zero(o layers.ZeroOptions, faults ...twin.Fault) twin.Run {
	return func(ctx context.Context, r *twin.Recorder) error {
		w := twin.Watch{Recorder: r, Sequences: 1, Faults: &twin.Injector{Faults: faults}}
		return j.onZero(ctx, o, w, func(*layers.Zero[*nn.Llama]) error { return r.EndStep(ctx) })
	}
}

// onZero trains, and calls after each step what is to be done. Steps of which the norm is
// not finite are skipped.
func (j *job) onZero(
	ctx context.Context, o layers.ZeroOptions, w twin.Watch, after func(*layers.Zero[*nn.Llama]) error,
) error {
	m, err := nn.NewLlama(j.cfg, j.seed)
	if err != nil {
		return err
	}
	z, err := layers.NewZero(m, sequences, m.Replica, j.optimizer, o)
	if err != nil {
		return err
	}
	for step := range j.steps {
		do := train.LlamaGradients(j.shards(step, 1), 1, tokens)
		_, _, err := twin.StepZero(ctx, w, z, do, rate)
		if err != nil && !errors.Is(err, optim.ErrNonFinite) {
			return err
		}
		if err := after(z); err != nil {
			return err
		}
	}
	return nil
}

// team is a Llama on data-parallel ranks that do several shards each. Gradients are summed
// over shards and not over ranks, so that the tree of additions is that of the shards.
type team struct {
	j          *job
	slices     collective.Slices
	models     []*nn.Llama
	optimizers []*optim.AdamW
	losses     [sequences]float32
}

// ranks trains a team.
func (j *job) ranks(n int, order collective.Order) twin.Run {
	return func(ctx context.Context, r *twin.Recorder) error {
		t, err := j.newTeam(n, order)
		if err != nil {
			return err
		}
		for step := range j.steps {
			if err := t.step(ctx, r, step); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
			if err := r.EndStep(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

func (j *job) newTeam(n int, order collective.Order) (*team, error) {
	t := &team{j: j, slices: collective.Slices{Exchange: collective.Exchange{Order: order}, Count: sequences}}
	for range n {
		m, err := nn.NewLlama(j.cfg, j.seed)
		if err != nil {
			return nil, err
		}
		t.models, t.optimizers = append(t.models, m), append(t.optimizers, j.optimizer())
	}
	return t, nil
}

// owner returns the rank that does a shard.
func (t *team) owner(shard int) int {
	for rank := range t.models {
		if _, end := t.slices.Of(rank, len(t.models)); shard < end {
			return rank
		}
	}
	return len(t.models) - 1
}

// step is that of all ranks.
func (t *team) step(ctx context.Context, r *twin.Recorder, step int) error {
	for rank, m := range t.models {
		r.Scales(rank, m.Shared().Scaling())
	}
	w := twin.Watch{Recorder: r, Rank: t.owner, Sequences: 1}
	do := twin.Gradients(w, train.LlamaGradients(t.j.shards(step, 1), 1, tokens))
	first := t.models[0].Shared().Scaling().Pass()
	if _, err := collective.Run(ctx, len(t.models), func(rank *collective.Rank) error {
		return t.gradients(rank, do, first)
	}); err != nil {
		return err
	}
	var sum float64
	for _, l := range t.losses {
		sum += float64(l)
	}
	recordMean(r, float32(sum/sequences))
	if err := t.endScales(first + sequences); err != nil {
		return err
	}
	for rank, m := range t.models {
		r.Means(rank, m.Params())
		if _, err := t.optimizers[rank].Step(ctx, m.Params(), rate); err != nil {
			return err
		}
		r.Weights(rank, m.Params())
	}
	return nil
}

// gradients gives a rank the mean gradients of all shards.
func (t *team) gradients(
	r *collective.Rank, do train.Gradients[*nn.Llama], firstPass uint64,
) (err error) {
	m := t.models[r.ID()]
	params := m.Params()
	terms := make([][][]float32, len(params))
	lo, hi := t.slices.Of(r.ID(), r.Ranks())
	for shard := lo; shard < hi; shard++ {
		m.Shared().Scaling().SetPass(firstPass + uint64(shard))
		m.ZeroGrad()
		if t.losses[shard], err = do(r.Context(), m, shard); err != nil {
			return err
		}
		for i, p := range params {
			terms[i] = append(terms[i], append([]float32{}, p.Grad...))
		}
	}
	for i, p := range params {
		s := t.slices
		s.Name = p.Name
		if err := r.AllReduceSlices(s, p.Grad, terms[i]); err != nil {
			return err
		}
		for k, v := range p.Grad {
			p.Grad[k] = v * (1.0 / sequences)
		}
	}
	return nil
}

// endScales ends the step of delayed scales, after ranks have exchanged their amaxes.
func (t *team) endScales(pass uint64) error {
	var all []nn.StepAmax
	for _, m := range t.models {
		m.Shared().Scaling().SetPass(pass)
		all = append(all, m.Shared().Scaling().StepAmax())
	}
	merged, err := nn.MergeStepAmax(all...)
	if err != nil {
		return err
	}
	for _, m := range t.models {
		if err := m.Shared().Scaling().SetStepAmax(merged); err != nil {
			return err
		}
		m.EndStep()
	}
	return nil
}

// micro trains a Llama on micro-batches of so many sequences, whose gradients a model adds
// up; or has only their forward passes. What belongs to a sequence is its part.
func (j *job) micro(size int, forward bool) twin.Run {
	return func(ctx context.Context, r *twin.Recorder) error {
		m, err := nn.NewLlama(j.cfg, j.seed)
		if err != nil {
			return err
		}
		o := j.optimizer()
		for step := range j.steps {
			r.Scales(0, m.Shared().Scaling())
			m.ZeroGrad()
			for i, s := range j.shards(step, size) {
				m.Shared().Tap = tapSequences(r, i*size, size)
				if _, err := m.Loss(ctx, s.Tokens, s.Targets, size, tokens); err != nil {
					return err
				}
				if forward {
					continue
				}
				if err := m.BackwardScaled(ctx, float32(size)/sequences); err != nil {
					return err
				}
			}
			if !forward {
				r.Means(0, m.Params())
				if _, err := o.Step(ctx, m.Params(), rate); err != nil {
					return err
				}
				r.Weights(0, m.Params())
			}
			m.EndStep()
			if err := r.EndStep(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// tapSequences records activations by sequence.
func tapSequences(r *twin.Recorder, first, n int) nn.Tap {
	return func(name string, values []float32, rows, cols int) {
		per := rows / n * cols
		for i := range n {
			at := twin.Place{Tensor: name, Part: first + i, Phase: twin.PhaseGradients}
			r.Record(at, values[i*per:(i+1)*per])
		}
	}
}
