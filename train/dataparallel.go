package train

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/internal/guard"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// DataParallel computes the gradients of a batch that is cut into shards. Replicas of
// a model, which share its parameters, take the shards from a queue; the gradients of
// each shard are kept, and Reducer takes their mean in the order of the shards. So
// the bits depend on how the data is cut, and not on how many replicas there are or
// which of them did what. Not safe for concurrent use: Gradients while another call goes on is
// [optim.ErrConcurrent].
//
// Memory: activations and gradients for each replica, and gradients for each shard.
type DataParallel[M Model] struct {
	Reducer collective.Reducer

	guard    guard.Guard
	replicas []M // the first is the model itself
	queue    parallel.Queue
	results  []shardResult
}

// Gradients computes the loss of a shard and adds its gradients to those of a model:
// a forward and a backward pass.
type Gradients[M Model] func(ctx context.Context, m M, shard int) (loss float32, err error)

// Shard is a part of a batch, as [Corpus.Batch] returns a whole one.
type Shard struct{ Tokens, Targets []int32 }

// LlamaGradients are those of a Llama's loss on shards, each [batch, seq].
func LlamaGradients(shards []Shard, batch, seq int) Gradients[*nn.Llama] {
	return func(ctx context.Context, m *nn.Llama, i int) (float32, error) {
		if i < 0 || i >= len(shards) {
			return 0, inputError("train: shard %d: there are %d shards", i, len(shards))
		}
		loss, err := m.Loss(ctx, shards[i].Tokens, shards[i].Targets, batch, seq)
		if err != nil {
			return 0, err
		}
		return loss, m.Backward(ctx)
	}
}

// shardResult is what became of a shard.
type shardResult struct {
	loss  float32
	grads [][]float32 // by parameter
	err   error
}

// NewDataParallel returns a number of replicas of a model, itself included, as [Replicas]
// does, whose errors it returns; the replicas' own values are given up for the model's.
func NewDataParallel[M Model](model M, replicas int, replica func() (M, error)) (*DataParallel[M], error) {
	all, err := Replicas(model, replicas, replica)
	if err != nil {
		return nil, err
	}
	return &DataParallel[M]{replicas: all}, nil
}

// Replicas returns a number of replicas of a model, the first of which is the model itself. The
// others are made by replica, which is called one time less, and must have the description,
// the parameters and the scales of the model. Each must be a model of its own, with gradients
// and an [nn.Shared] that no other has. It is an error if there is not at least one
// ([ErrInput]), if a replica is another model or has parts of one ([ErrMismatch]), or what
// replica returns.
func Replicas[M Model](model M, n int, replica func() (M, error)) ([]M, error) {
	if n < 1 {
		return nil, inputError("train: %d replicas: there must be at least 1", n)
	}
	if n > 1 && replica == nil {
		return nil, inputError("train: %d replicas without a function that makes them", n)
	}
	if err := checkModel(model); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	all := []M{model}
	for range n - 1 {
		r, err := replica()
		if err != nil {
			return nil, err
		}
		if err := accept(all, r); err != nil {
			return nil, fmt.Errorf("train: %w", err)
		}
		all = append(all, r)
	}
	return all, nil
}

// accept returns an error unless r is the same model as the first of some replicas and shares
// no memory with any of them.
func accept[M Model](replicas []M, r M) error {
	if isNil(r) {
		return inputError("a replica: %w", errNoModel)
	}
	if err := sameModel(replicas[0], r); err != nil {
		return err
	}
	for _, other := range replicas {
		if err := separate(other, r); err != nil {
			return err
		}
	}
	return nil
}

// sameModel returns an error unless a replica can compute with the parameters of a
// model, to the same result.
func sameModel(model, replica Model) error {
	params, others := model.Params(), replica.Params()
	if len(params) != len(others) {
		return mismatch("a replica has %d parameters and the model %d", len(others), len(params))
	}
	for i, p := range params {
		q := others[i]
		if q == nil || q.Name != p.Name || q.Rows != p.Rows || q.Cols != p.Cols || len(q.Grad) != len(p.Grad) {
			return mismatch("parameter %d of a replica is not %q, [%d, %d], as the model's is", i, p.Name, p.Rows, p.Cols)
		}
	}
	description, err := saveModel(model.Describe())
	if err != nil {
		return err
	}
	return description.compare(replica.Describe(), amongReplicas)
}

// separate returns an error if two models with the same parameters have memory in
// common that a backward pass writes.
func separate(a, b Model) error {
	if a.Shared() == b.Shared() {
		return mismatch("a replica has the nn.Shared of the model or of another replica: it needs one of its own")
	}
	others := b.Params()
	for i, p := range a.Params() {
		if q := others[i]; p == q || len(p.Grad) > 0 && &p.Grad[0] == &q.Grad[0] {
			return mismatch("a replica has the parameter %q of the model or of another replica: it needs gradients of its own", p.Name)
		}
	}
	return nil
}

// Gradients replaces the gradients of the model by the mean of those of n shards, and
// returns the mean loss and what the reduction did to each parameter, in the order of
// Params. Each shard counts the same. do is called by several goroutines, each with a
// replica of its own whose gradients are zero.
//
// Replicas begin with the scaling state of the model, and exchange what they recorded
// in this step, a [nn.StepAmax]; the model then has all of it, so that one
// [nn.Scaling.EndStep] of the model follows, as always. The backward pass of a shard
// has the number that it would have if the model did all shards in turn. Replicas
// report to whom the model reports; a Tap is left alone. The model's [nn.Shared] hears
// of progress.
//
// The first error of a shard is returned; the gradients are then unspecified, and
// [nn.Scaling.DropStep] is due.
func (d *DataParallel[M]) Gradients(ctx context.Context, n int, do Gradients[M]) (loss float32, reductions []collective.Reduction, err error) {
	if err := d.guard.Enter("train: a DataParallel"); err != nil {
		return 0, nil, err
	}
	defer d.guard.Leave()
	if n < 1 || do == nil {
		return 0, nil, inputError("train: %d shards: there must be at least 1, and a function that does them", n)
	}
	if err := d.Reducer.Check(); err != nil {
		return 0, nil, err
	}
	if err := d.scatter(); err != nil {
		return 0, nil, err
	}
	for len(d.results) < n {
		d.results = append(d.results, d.newResult())
	}
	scaling := d.replicas[0].Shared().Scaling()
	work := &shardQueue[M]{d: d, ctx: ctx, do: do, firstPass: scaling.Pass(), free: d.freeReplicas()}
	work.done.Start(ctx, d.replicas[0].Shared().Progress, "gradients", int64(n))
	d.queue.Run(n, len(d.replicas), work)
	scaling.SetPass(work.firstPass + uint64(n))
	results := d.results[:n]
	for i, r := range results {
		if r.err != nil {
			return 0, nil, fmt.Errorf("shard %d: %w", i, r.err)
		}
	}
	if reductions, err = d.reduce(ctx, results); err != nil {
		return 0, nil, err
	}
	return meanLoss(results), reductions, d.exchange()
}

// scatter gives all replicas the model's parameters and state.
func (d *DataParallel[M]) scatter() error {
	model := d.replicas[0]
	if len(d.replicas) == 1 {
		return nil
	}
	state := model.Shared().Scaling().State()
	for _, r := range d.replicas[1:] {
		for i, p := range model.Params() {
			r.Params()[i].Value = p.Value
		}
		if err := r.Shared().Scaling().Restore(state); err != nil {
			return mismatch("train: a replica: %w", err)
		}
		r.Shared().Scaling().DropStep() // the model has what was recorded before
		r.Shared().Reporter = model.Shared().Reporter
	}
	return nil
}

// exchange gives the model what all replicas recorded in this step.
func (d *DataParallel[M]) exchange() error {
	if len(d.replicas) == 1 {
		return nil
	}
	recorded := make([]nn.StepAmax, len(d.replicas))
	for i, r := range d.replicas {
		recorded[i] = r.Shared().Scaling().StepAmax()
	}
	merged, err := nn.MergeStepAmax(recorded...)
	if err != nil {
		return err
	}
	return d.replicas[0].Shared().Scaling().SetStepAmax(merged)
}

func (d *DataParallel[M]) newResult() (r shardResult) {
	for _, p := range d.replicas[0].Params() {
		r.grads = append(r.grads, make([]float32, len(p.Grad)))
	}
	return r
}

func (d *DataParallel[M]) freeReplicas() chan M {
	free := make(chan M, len(d.replicas))
	for _, r := range d.replicas {
		free <- r
	}
	return free
}

// shardQueue gives each worker a replica.
type shardQueue[M Model] struct {
	d         *DataParallel[M]
	ctx       context.Context
	do        Gradients[M]
	firstPass uint64 // number of shard 0's backward pass
	free      chan M
	done      meter.Meter
}

// Work does shards as long as there are any.
func (w *shardQueue[M]) Work(q *parallel.Queue) {
	replica := <-w.free
	for i, ok := q.Next(); ok; i, ok = q.Next() {
		w.d.results[i].err = w.shard(replica, i)
	}
}

// shard computes the gradients of a shard.
func (w *shardQueue[M]) shard(replica M, i int) (err error) {
	if err := meter.Err(w.ctx); err != nil {
		return err
	}
	replica.Shared().Scaling().SetPass(w.firstPass + uint64(i))
	nn.ZeroGrad(replica.Params())
	result := &w.d.results[i]
	if result.loss, err = w.do(w.ctx, replica, i); err != nil {
		return err
	}
	for k, p := range replica.Params() {
		copy(result.grads[k], p.Grad)
	}
	return w.done.Add(1)
}

// reduce writes the means of all gradients to the model's.
func (d *DataParallel[M]) reduce(ctx context.Context, results []shardResult) ([]collective.Reduction, error) {
	params := d.replicas[0].Params()
	reductions := make([]collective.Reduction, len(params))
	grads := make([][]float32, len(results))
	for i, p := range params {
		if err := meter.Err(ctx); err != nil {
			return nil, err
		}
		for k, r := range results {
			grads[k] = r.grads[i]
		}
		reductions[i] = d.Reducer.Mean(i, p.Grad, grads)
	}
	return reductions, nil
}

func meanLoss(results []shardResult) float32 {
	var sum float64
	for _, r := range results {
		sum += float64(r.loss)
	}
	return float32(sum / float64(len(results)))
}
