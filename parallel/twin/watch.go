package twin

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/layers"
	"github.com/octavo-fp8/octavo/train"
)

// Watch says what is seen of the shards of a batch, and what is done to them. The zero
// value sees nothing.
type Watch struct {
	Recorder *Recorder // hears of losses and gradients of shards, as parts; nil: nobody

	// Rank returns the rank that does a shard; nil: rank 0 does all.
	Rank func(shard int) int

	// Scales has what a shard begins with recorded, as [Recorder.Scales] does. It is for
	// ranks that do one shard each.
	Scales bool

	// Sequences is the number of sequences of a shard, of which activations are recorded,
	// each as a part, but those of an expert, which are one; 0: none are.
	Sequences int

	Sums   *Sums     // is told what ranks have; nil: nobody
	Faults *Injector // nil: there are none
}

// byRank is the Rank of ranks that each do the shard of their number.
func byRank(shard int) int { return shard }

// Gradients returns do, watched. A [nn.Tap] of a model is taken away while do runs, if
// activations are recorded.
func Gradients[M train.Model](w Watch, do train.Gradients[M]) train.Gradients[M] {
	return func(ctx context.Context, m M, shard int) (loss float32, err error) {
		rank := 0
		if w.Rank != nil {
			rank = w.Rank(shard)
		}
		dropped, err := w.Faults.before(m, rank)
		if err != nil {
			return 0, err
		}
		if w.Recorder != nil && w.Scales {
			w.Recorder.Scales(rank, m.Shared().Scaling())
		}
		if !dropped {
			defer w.tap(m.Shared(), rank, shard)()
			if loss, err = do(ctx, m, shard); err != nil {
				return loss, err
			}
		}
		if err := w.Faults.after(m, rank, false); err != nil {
			return 0, err
		}
		w.took(m, rank, shard, loss, dropped)
		return loss, w.Faults.after(m, rank, true)
	}
}

// took records what a shard has.
func (w Watch) took(m train.Model, rank, shard int, loss float32, dropped bool) {
	if w.Sums != nil && !dropped {
		w.Sums.Took(m.Params())
	}
	if w.Recorder == nil {
		return
	}
	at := func(tensor string) Place { return Place{tensor, shard, rank, PhaseGradients} }
	w.Recorder.Record(at("loss"), []float32{loss})
	for _, p := range m.Params() {
		w.Recorder.Record(at(p.Name+".gradient"), p.Grad)
	}
}

// tap has activations recorded until what it returns is called.
func (w Watch) tap(s *nn.Shared, rank, shard int) (restore func()) {
	if w.Recorder == nil || w.Sequences < 1 {
		return func() {}
	}
	before := s.Tap
	s.Tap = func(name string, values []float32, rows, cols int) {
		n := w.Sequences
		if slices.Contains(strings.Split(name, "."), "experts") {
			n = 1 // its rows are the tokens that chose an expert, of any sequence
		}
		for i := range n {
			part := values[i*rows/n*cols : (i+1)*rows/n*cols]
			w.Recorder.Record(Place{name, shard*w.Sequences + i, rank, PhaseGradients}, part)
		}
	}
	return func() { s.Tap = before }
}

// Scales records the scales of a rank that a step begins with, the amaxes that they follow
// from, newest first, and the biases of routers. Those of all ranks are copies.
func (r *Recorder) Scales(rank int, s *nn.Scaling) {
	state := s.State()
	for _, name := range slices.Sorted(maps.Keys(state.Histories.Histories)) {
		var scales, amaxes []float32
		for _, b := range state.Histories.Histories[name].Blocks {
			scales = append(scales, float32(b.Scale))
			for _, a := range b.Past {
				amaxes = append(amaxes, float32(a))
			}
		}
		r.Record(Place{name + ".amax", 0, rank, PhaseScales}, amaxes)
		r.Record(Place{name + ".scale", 0, rank, PhaseScales}, scales)
	}
	for _, name := range slices.Sorted(maps.Keys(state.Routers)) {
		r.Record(Place{name + ".bias", 0, rank, PhaseScales}, state.Routers[name].Bias)
	}
}

// Means records the gradients of a rank's parameters as means. Those of all ranks are
// copies.
func (r *Recorder) Means(rank int, params []*nn.Param) {
	for _, p := range params {
		r.Record(Place{p.Name + ".mean_gradient", 0, rank, PhaseMeans}, p.Grad)
	}
}

// Weights records the values of a rank's parameters. Those of all ranks are copies.
func (r *Recorder) Weights(rank int, params []*nn.Param) {
	for _, p := range params {
		r.Record(Place{p.Name, 0, rank, PhaseWeights}, p.Value)
	}
}

// StepZero is a step of training of z, watched: its scales, the gradients of each rank, their
// means, and the weights that each has after it, also where the step was skipped, which is
// [optim.ErrNonFinite]. Ranks of absent take no part, as [layers.Zero.StepWithout] says.
// [Recorder.EndStep] is for the caller.
func StepZero[M train.Model](
	ctx context.Context, w Watch, z *layers.Zero[M], do train.Gradients[M], lr float64, absent ...int,
) (loss float32, norm float64, err error) {
	w.Rank, w.Scales = byRank, true
	loss, norm, err = z.StepWithout(ctx, absent, Gradients(w, do), lr)
	if err != nil && !errors.Is(err, optim.ErrNonFinite) || w.Recorder == nil {
		return loss, norm, err
	}
	if err := z.Gather(ctx); err != nil {
		return loss, norm, err
	}
	w.Recorder.Record(Place{"loss.mean", 0, 0, PhaseMeans}, []float32{loss})
	for rank := range z.Ranks() {
		if means := Means(z, rank); means != nil {
			w.Recorder.Means(rank, means)
		}
		w.Recorder.Weights(rank, z.Model(rank).Params())
	}
	return loss, norm, err
}

// Means returns parameters with the mean gradients of the last step: those of a rank, or,
// where each has a part only, all of them on rank 0 and nil on others. Values are nil. They
// may share z's memory.
func Means[M train.Model](z *layers.Zero[M], rank int) (means []*nn.Param) {
	if z.Sharded() && rank > 0 {
		return nil
	}
	for i, p := range z.Model(rank).Params() {
		mean := &nn.Param{Name: p.Name, Rows: p.Rows, Cols: p.Cols, Grad: p.Grad}
		if z.Sharded() {
			mean.Grad = nil
			for r := range z.Ranks() {
				mean.Grad = append(mean.Grad, z.Shards(r)[i].Grad...)
			}
		}
		means = append(means, mean)
	}
	return means
}
