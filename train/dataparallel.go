package train

import (
	"fmt"

	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/nn"
)

// DataParallel computes the gradients of a batch that is cut into shards. Replicas of
// a model, which share its parameters, take the shards from a queue; the gradients of
// each shard are kept, and Reducer takes their mean in the order of the shards. So
// the bits depend on how the data is cut, and not on how many replicas there are or
// which of them did what. Not safe for concurrent use.
//
// Memory: activations and gradients for each replica, and gradients for each shard.
type DataParallel struct {
	Reducer Reducer

	replicas []*nn.Llama // the first is the model itself
	queue    parallel.Queue

	batch, seq int
	firstPass  uint64 // number of shard 0's backward pass
	shards     []Shard
	results    []shardResult
}

// Shard is a part of a batch, as [Corpus.Batch] returns a whole one.
type Shard struct{ Tokens, Targets []int32 }

// shardResult is what became of a shard.
type shardResult struct {
	loss  float32
	grads [][]float32 // by parameter
	err   error
}

// NewDataParallel returns replicas of m, itself included. It is an error if there
// is not at least one.
func NewDataParallel(m *nn.Llama, replicas int) (*DataParallel, error) {
	if replicas < 1 {
		return nil, fmt.Errorf("train: %d replicas: there must be at least 1", replicas)
	}
	d := &DataParallel{replicas: []*nn.Llama{m}}
	for range replicas - 1 {
		r, err := nn.NewLlama(m.Config(), 0)
		if err != nil {
			return nil, err
		}
		d.replicas = append(d.replicas, r)
	}
	return d, nil
}

// Gradients replaces the gradients of the model by the mean of those of shards, each
// [batch, seq], and returns the mean loss and what the reduction did to each
// parameter, in the order of [nn.Llama.Params]. Amax that delayed scales recorded is
// merged into the model's scaling state by [nn.MergeScaling], so that one
// [nn.Llama.EndStep] of the model follows, as always. For stochastic rounding the backward
// pass of a shard has the number that it would have if the model did all shards in turn.
// Replicas report to whom the model reports. The first error of [nn.Llama.Loss] or
// [nn.Llama.Backward] by shard is returned; the gradients are then unspecified, and
// [nn.Llama.DropStep] is due.
func (d *DataParallel) Gradients(shards []Shard, batch, seq int) (loss float32, reductions []Reduction, err error) {
	if len(shards) == 0 {
		return 0, nil, fmt.Errorf("train: there are no shards")
	}
	if err := d.scatter(); err != nil {
		return 0, nil, err
	}
	d.shards, d.batch, d.seq = shards, batch, seq
	for len(d.results) < len(shards) {
		d.results = append(d.results, d.newResult())
	}
	d.firstPass = d.replicas[0].Passes()
	d.queue.Run(len(shards), len(d.replicas), &replicaQueue{d: d, free: d.freeReplicas()})
	d.replicas[0].SetPasses(d.firstPass + uint64(len(shards)))
	results := d.results[:len(shards)]
	for i, r := range results {
		if r.err != nil {
			return 0, nil, fmt.Errorf("shard %d: %w", i, r.err)
		}
	}
	return meanLoss(results), d.reduce(results), d.mergeScaling()
}

// scatter gives all replicas the model's parameters and state.
func (d *DataParallel) scatter() error {
	m := d.replicas[0]
	for _, r := range d.replicas[1:] {
		for i, p := range m.Params() {
			r.Params()[i].Value = p.Value
		}
		if err := r.RestoreScaling(m.ScalingState()); err != nil {
			return err
		}
		r.Listen(m.Listener())
	}
	return nil
}

func (d *DataParallel) newResult() (r shardResult) {
	for _, p := range d.replicas[0].Params() {
		r.grads = append(r.grads, make([]float32, len(p.Grad)))
	}
	return r
}

func (d *DataParallel) freeReplicas() chan *nn.Llama {
	free := make(chan *nn.Llama, len(d.replicas))
	for _, r := range d.replicas {
		free <- r
	}
	return free
}

// replicaQueue gives each worker a replica.
type replicaQueue struct {
	d    *DataParallel
	free chan *nn.Llama
}

// Work does shards as long as there are any.
func (w *replicaQueue) Work(q *parallel.Queue) {
	replica := <-w.free
	for i, ok := q.Next(); ok; i, ok = q.Next() {
		replica.SetPasses(w.d.firstPass + uint64(i))
		w.d.results[i].err = w.d.do(replica, w.d.shards[i], &w.d.results[i])
	}
}

// do computes the gradients of a shard.
func (d *DataParallel) do(replica *nn.Llama, shard Shard, result *shardResult) (err error) {
	replica.ZeroGrad()
	if result.loss, err = replica.Loss(shard.Tokens, shard.Targets, d.batch, d.seq); err != nil {
		return err
	}
	if err := replica.Backward(); err != nil {
		return err
	}
	for i, p := range replica.Params() {
		copy(result.grads[i], p.Grad)
	}
	return nil
}

// reduce writes the means of all gradients to the model's.
func (d *DataParallel) reduce(results []shardResult) []Reduction {
	params := d.replicas[0].Params()
	reductions := make([]Reduction, len(params))
	grads := make([][]float32, len(results))
	for i, p := range params {
		for k, r := range results {
			grads[k] = r.grads[i]
		}
		reductions[i] = d.Reducer.Mean(i, p.Grad, grads)
	}
	return reductions
}

// mergeScaling gives the model what all replicas recorded.
func (d *DataParallel) mergeScaling() error {
	states := make([]nn.ScalingState, len(d.replicas))
	for i, r := range d.replicas {
		states[i] = r.ScalingState()
	}
	merged, err := nn.MergeScaling(states...)
	if err != nil {
		return err
	}
	return d.replicas[0].RestoreScaling(merged)
}

func meanLoss(results []shardResult) float32 {
	var sum float64
	for _, r := range results {
		sum += float64(r.loss)
	}
	return float32(sum / float64(len(results)))
}
