package parity

import (
	"context"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

// trainee is a model in training whose operands have a spread.
type trainee struct {
	name      string
	model     *nn.Llama
	masters   []*nn.Param // what the optimizer moves
	factors   []factors
	optimizer *optim.AdamW
}

func newOptimizer(workers int) *optim.AdamW {
	return &optim.AdamW{Clip: 1, WeightDecay: 0.1, Workers: workers}
}

// newTrainee returns a model with the first weights of a seed, without a spread.
func newTrainee(name string, c nn.Config, seed uint64) (*trainee, error) {
	model, err := nn.NewLlama(c, seed)
	if err != nil {
		return nil, err
	}
	t := &trainee{name: name, model: model, optimizer: newOptimizer(c.Workers)}
	for _, p := range model.Params() {
		t.masters = append(t.masters, clone(p))
	}
	t.spread(nil)
	return t, nil
}

func clone(p *nn.Param) *nn.Param {
	c := *p
	c.Value, c.Grad = slices.Clone(p.Value), make([]float32, len(p.Grad))
	return &c
}

// fork returns a trainee that is where t, whose moments are FP32, is, and goes on in other
// arithmetic.
func (t *trainee) fork(name string, c nn.Config, moments optim.MomentFormat) (*trainee, error) {
	model, err := nn.NewZeroLlama(c)
	if err != nil {
		return nil, err
	}
	f := &trainee{name: name, model: model, factors: t.factors, optimizer: newOptimizer(c.Workers)}
	f.optimizer.Moments.Format = moments
	for _, p := range t.masters {
		f.masters = append(f.masters, clone(p))
	}
	from, err := t.optimizer.Tensors(t.masters)
	if err != nil {
		return nil, err
	}
	state := t.optimizer.State()
	state.Options = f.optimizer.State().Options
	err = f.optimizer.Restore(state, f.masters, func(to []optim.Tensor) error {
		for i := range to {
			was := from[i].Elements.(arrays.Floats)
			switch x := to[i].Elements.(type) {
			case arrays.Floats:
				copy(x, was)
			case arrays.BFloat16s:
				for j, v := range was {
					x[j] = fp8.BFloat16FromFloat32(v)
				}
			}
		}
		return nil
	})
	f.write()
	return f, err
}

// spread gives the operands a spread, or none.
func (t *trainee) spread(s []spread) {
	t.factors = factorsOf(t.masters, s)
	t.write()
}

// write gives the model the masters' values.
func (t *trainee) write() {
	for i, p := range t.model.Params() {
		t.factors[i].times(p.Value, t.masters[i].Value, p.Cols)
	}
}

// gradients computes those of a batch, in the model's coordinates, and returns its loss.
func (t *trainee) gradients(ctx context.Context, b batch) (loss float64, err error) {
	t.model.ZeroGrad()
	l, err := t.model.Loss(ctx, b.tokens, b.targets, b.sequences, b.seq)
	if err != nil {
		return 0, err
	}
	return float64(l), t.model.Backward(ctx)
}

// step trains on a batch and returns its loss before that.
func (t *trainee) step(ctx context.Context, b batch, rate float64) (loss float64, err error) {
	if loss, err = t.gradients(ctx, b); err != nil {
		return 0, err
	}
	for i, p := range t.model.Params() {
		t.factors[i].times(t.masters[i].Grad, p.Grad, p.Cols)
	}
	if _, err = t.optimizer.Step(ctx, t.masters, rate); err != nil {
		return 0, fmt.Errorf("%s: loss %v: %w", t.name, float32(loss), err)
	}
	t.write()
	return loss, nil
}

// batch is a part of a text, [sequences, seq].
type batch struct {
	tokens, targets []int32
	sequences, seq  int
}
