package layers

import (
	"context"
	"math"

	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/train"
)

// AmaxTiming is when ranks exchange the amaxes of delayed scales.
type AmaxTiming uint8

const (
	AmaxOnTime     AmaxTiming = iota // before each step ends, so that all have the same scales
	AmaxStepBehind                   // likewise, but histories get those of the step before; at first, a rank's own
	AmaxNever                        // histories get a rank's own, and scales differ
)

var amaxTimings = enum.Enum[AmaxTiming]{
	Type: "AmaxTiming", What: "timing of amaxes",
	Names: []string{"on-time", "step-behind", "never"},
	Err:   collective.ErrInput, Prefix: "world",
}

// String returns the name of a, such as "on-time".
func (a AmaxTiming) String() string                   { return amaxTimings.String(a) }
func (a AmaxTiming) MarshalText() ([]byte, error)     { return amaxTimings.MarshalText(a) }
func (a *AmaxTiming) UnmarshalText(text []byte) error { return amaxTimings.UnmarshalText(a, text) }

// ZeroOptions say how [Zero] trains. The zero value is plain data parallelism in FP32.
type ZeroOptions struct {
	// Stage is that of ZeRO (Rajbhandari et al., arXiv 1910.02054):
	//
	//	0  all ranks have everything: gradients are all-reduced, and each moves all weights
	//	1  moments and FP32 weights are sharded: gradients are all-reduced, each rank
	//	   moves its part, and weights are all-gathered
	//	2  gradients too: they are reduce-scattered
	//	3  weights too: they are all-gathered before a step, and NaN between steps
	//
	// A rank's part of a matrix are rows, and of a vector elements: the r-th of R ranges
	// of equal length, rounded up, as FSDP2 has them. So are messages.
	Stage int

	// Gradients is how gradients are summed; Name and Cols are each parameter's. A sum
	// becomes a mean as Division says, which may not be [collective.DivideAuto].
	Gradients collective.Exchange
	Division  collective.Division

	// Weights is the form in which weights are all-gathered: all ranks compute with what
	// it decodes to, while their parts stay FP32. Of stage 0 it is FP32.
	Weights collective.Wire

	// KeepVectors gathers vectors, which weights of norms are, in FP32 whatever Weights is.
	// Near 1 E4M3 under a scale that is a power of two has steps of 1/8, and a norm's weight
	// that is gathered so does not move.
	KeepVectors bool

	// Rows, unless 0, are what parts of matrices begin at multiples of, such as the rows
	// of a block. Moments with blocks are those of one rank if parts hold whole blocks.
	Rows int

	Amax AmaxTiming
}

// Check returns an error, [collective.ErrInput], that names the first option that is out of range.
func (o *ZeroOptions) Check() error {
	g := o.Gradients
	if g.Amax == collective.AmaxLate && g.Memory == nil {
		g.Memory = new(collective.AmaxMemory) // each rank and parameter gets its own
	}
	for _, err := range []error{g.Check(), o.Weights.Check(), amaxTimings.Check(o.Amax)} {
		if err != nil {
			return err
		}
	}
	switch {
	case o.Stage < 0 || o.Stage > 3:
		return inputError("ZeroOptions.Stage is %d: want 0 to 3", o.Stage)
	case o.Stage == 0 && o.Weights != collective.Wire{}:
		return inputError("ZeroOptions.Weights is %v: stage 0 sends no weights", o.Weights)
	case o.Rows < 0:
		return inputError("ZeroOptions.Rows is %d: it must not be negative", o.Rows)
	case o.Division > collective.DivideRoot:
		return inputError("ZeroOptions.Division is %v: want post, pre or root", o.Division)
	}
	return nil
}

// Zero trains a model data-parallel on ranks that have replicas of it, with what ZeRO
// shards sharded. In FP32, with sums in the order of ranks (OrderRank or OrderScatter)
// and amaxes on time, all stages have the bits of [train.DataParallel] with a shard for
// each rank, and of [optim.AdamW] on one: the norm of all gradients is added up in the
// order in which one rank would, if need be by sending the running sum around. Not safe
// for concurrent use.
type Zero[M train.Model] struct {
	o       ZeroOptions
	ranks   []*zeroRank[M]
	norms   []normTerm
	traffic collective.Traffic
}

// zeroRank is what a rank has.
type zeroRank[M train.Model] struct {
	model     M
	optimizer *optim.AdamW
	params    []*sharded
	merged    *nn.StepAmax // of the step before, for AmaxStepBehind
	gathered  bool         // the model has its weights
	absent    bool         // it takes no part in the step
	loss      float32
	norm      float64
}

// NewZero returns a model on ranks, of which the first has the model itself; replica
// makes the others, as [train.Replicas] says, and optimizer an [optim.AdamW] for
// each, all with the same options. The error is [collective.ErrInput], or that of Replicas.
func NewZero[M train.Model](model M, ranks int, replica func() (M, error), optimizer func() *optim.AdamW, o ZeroOptions) (*Zero[M], error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if optimizer == nil {
		return nil, inputError("NewZero without a function that makes optimizers")
	}
	if ranks > 1 && replica == nil {
		return nil, inputError("NewZero: %d ranks without a function that makes replicas", ranks)
	}
	models, err := train.Replicas(model, ranks, replica)
	if err != nil {
		return nil, err
	}
	z := &Zero[M]{o: o}
	state := model.Shared().Scaling().State()
	for id, m := range models {
		r := &zeroRank[M]{model: m, optimizer: optimizer(), gathered: o.Stage < 3 && o.Weights == collective.Wire{}}
		if r.optimizer == nil {
			return nil, inputError("NewZero: rank %d has no optimizer", id)
		}
		if id > 0 {
			if err := m.Shared().Scaling().Restore(state); err != nil {
				return nil, err
			}
			m.Shared().Reporter = model.Shared().Reporter
		}
		for i, p := range m.Params() {
			copy(p.Value, model.Params()[i].Value)
			s := newSharded(p, o.Stage, ranks, id, id+1, o.Rows)
			s.grads = [][]float32{p.Grad}
			r.params = append(r.params, &s)
		}
		z.ranks = append(z.ranks, r)
	}
	for i, s := range z.ranks[0].params {
		for part := range ranks {
			if s.cuts[part] < s.cuts[part+1] {
				z.norms = append(z.norms, normTerm{part, s.moved.Name, func() []float32 {
					return z.ranks[part].params[i].moved.Grad
				}})
			}
		}
	}
	return z, nil
}

// Ranks returns how many ranks there are.
func (z *Zero[M]) Ranks() int { return len(z.ranks) }

// Model returns the replica of a rank, of which the first is the model itself.
func (z *Zero[M]) Model(rank int) M { return z.ranks[rank].model }

// Shards returns what a rank moves, in the order of the model's parameters: its parts of
// the FP32 weights, and their gradients. Parts may be empty.
func (z *Zero[M]) Shards(rank int) []*nn.Param { return z.ranks[rank].moved() }

func (z *zeroRank[M]) moved() (params []*nn.Param) {
	for _, s := range z.params {
		params = append(params, s.moved)
	}
	return params
}

// Sharded reports whether ranks move parts of the parameters only, as from stage 1 on.
func (z *Zero[M]) Sharded() bool { return z.o.Stage > 0 }

// Traffic returns what has been sent so far.
func (z *Zero[M]) Traffic() collective.Traffic { return z.traffic }

// Step is a step of training: each rank computes the gradients of its shard of the batch,
// the mean gradient moves the weights by the learning rate lr, and the step of delayed
// scales ends. do is called by all ranks at once, each with its own replica, whose
// gradients are zero, and its number. It returns the mean loss of the ranks, and the norm
// of the mean gradient before clipping.
//
// An error names the rank; the run cannot go on after one, but for a norm that is not
// finite, optim.ErrNonFinite, after which nothing has moved and amaxes are dropped, those that
// AmaxLate would have had next among them.
func (z *Zero[M]) Step(ctx context.Context, do train.Gradients[M], lr float64) (loss float32, norm float64, err error) {
	return z.StepWithout(ctx, nil, do, lr)
}

// StepWithout is Step with the share of some ranks left out, such as of those that hang or
// whose gradients cannot be trusted: do is not called for them, and losses and gradients
// are the means of the other ranks. They get what all get, and move their parts. With sums
// in the order of ranks, in FP32, the bits are those of the others alone. It is an error,
// [collective.ErrInput], if none is left.
func (z *Zero[M]) StepWithout(
	ctx context.Context, absent []int, do train.Gradients[M], lr float64,
) (loss float32, norm float64, err error) {
	if do == nil {
		return 0, 0, inputError("Zero.Step without a function that computes gradients")
	}
	present, err := z.leaveOut(absent)
	if err != nil {
		return 0, 0, err
	}
	first := z.ranks[0].model.Shared().Scaling().Pass()
	if err := z.run(ctx, func(r *collective.Rank) error {
		return z.ranks[r.ID()].step(r, z, do, first, present, lr)
	}); err != nil {
		return 0, 0, err
	}
	var sum float64
	for _, r := range z.ranks {
		if !r.absent {
			sum += float64(r.loss)
		}
	}
	norm = z.ranks[0].norm
	if isSkip(norm) {
		err = skipped(norm)
	}
	return float32(sum / float64(present)), norm, err
}

// leaveOut marks the ranks that take no part in a step, and returns how many do.
func (z *Zero[M]) leaveOut(absent []int) (present int, err error) {
	for _, r := range z.ranks {
		r.absent = false
	}
	present = len(z.ranks)
	for _, id := range absent {
		if id < 0 || id >= len(z.ranks) || z.ranks[id].absent {
			return 0, inputError("absent ranks %v: %d is no rank of %d, or is there twice",
				absent, id, len(z.ranks))
		}
		z.ranks[id].absent = true
		present--
	}
	if present == 0 {
		return 0, inputError("absent ranks %v: none of %d is left", absent, len(z.ranks))
	}
	return present, nil
}

// skipped is the error of a norm that is not finite.
func skipped(norm float64) error {
	return sentinel.Errorf(optim.ErrNonFinite, "layers: the gradient norm is %v: no rank has moved a weight", norm)
}

// Gather gives all replicas the weights that the next step computes with, such as for an
// evaluation: with stage 3 they have none between steps.
func (z *Zero[M]) Gather(ctx context.Context) error {
	return z.run(ctx, func(r *collective.Rank) error { return z.ranks[r.ID()].gather(r, &z.o) })
}

// run calls f for all ranks and counts what they send.
func (z *Zero[M]) run(ctx context.Context, f func(r *collective.Rank) error) error {
	traffic, err := collective.Run(ctx, len(z.ranks), f)
	z.traffic.Add(traffic)
	return err
}

// step is a rank's.
func (z *zeroRank[M]) step(
	r *collective.Rank, of *Zero[M], do train.Gradients[M], firstPass uint64, present int, lr float64,
) (err error) {
	o := &of.o
	if err := z.gather(r, o); err != nil {
		return err
	}
	params, scales := z.model.Params(), z.model.Shared().Scaling()
	nn.ZeroGrad(params)
	scales.SetPass(firstPass + uint64(r.ID()))
	if z.absent {
		addNothing(params)
	} else if z.loss, err = do(r.Context(), z.model, r.ID()); err != nil {
		return err
	}
	scales.SetPass(firstPass + uint64(r.Ranks()))
	if err := z.reduce(r, o, params, present); err != nil {
		return err
	}
	if o.Stage == 0 {
		z.norm = optim.GradientNorm(params)
	} else if z.norm, err = addNorm(r, of.norms); err != nil {
		return err
	}
	if isSkip(z.norm) {
		scales.DropStep()
		for _, s := range z.params {
			s.memory.Drop()
		}
	} else if err := z.move(r, o, lr); err != nil {
		return err
	}
	if o.Stage > 0 {
		z.gathered = false
	}
	if o.Stage == 3 {
		release(params)
		return nil
	}
	return z.gather(r, o)
}

// move moves the rank's part and ends the step of delayed scales.
func (z *zeroRank[M]) move(r *collective.Rank, o *ZeroOptions, lr float64) error {
	if err := z.optimizer.StepNorm(r.Context(), z.moved(), lr, z.norm); err != nil {
		return err
	}
	if err := z.exchange(r, o); err != nil {
		return err
	}
	z.model.Shared().Scaling().EndStep()
	return nil
}

// addNothing makes gradients -0, which changes no sum, not even that of -0 and -0.
func addNothing(params []*nn.Param) {
	zero := float32(math.Copysign(0, -1))
	for _, p := range params {
		for i := range p.Grad {
			p.Grad[i] = zero
		}
	}
}

// release sets weights that a rank gives up to NaN, so that any use of them shows.
func release(params []*nn.Param) {
	for _, p := range params {
		for i := range p.Value {
			p.Value[i] = canonicalNaN
		}
	}
}

// gather gives the model its weights, unless it has them.
func (z *zeroRank[M]) gather(r *collective.Rank, o *ZeroOptions) error {
	if z.gathered || o.Stage == 0 {
		return nil
	}
	step := z.model.Shared().Scaling().Pass()
	for i, p := range z.model.Params() {
		x := z.params[i].exchange(collective.Exchange{
			Wire: o.Weights.InStep(step), Order: o.Gradients.Order, Reporter: o.Gradients.Reporter,
		}, p)
		if o.KeepVectors && p.Rows == 1 {
			x.Wire = collective.Wire{}
		}
		if err := z.params[i].gather(r, x, p.Value); err != nil {
			return err
		}
	}
	z.gathered = true
	return nil
}

// reduce gives shards the mean gradient of the ranks that are present.
func (z *zeroRank[M]) reduce(r *collective.Rank, o *ZeroOptions, params []*nn.Param, present int) error {
	step := z.model.Shared().Scaling().Pass()
	for i, p := range params {
		x := o.Gradients
		x.Wire, x.Result = x.Wire.InStep(step), x.Result.InStep(step)
		s := z.params[i]
		if err := s.reduce(r, s.exchange(x, p), o.Stage, o.Division, present); err != nil {
			return err
		}
	}
	return nil
}

// exchange gives the histories of delayed scales the amaxes that they are to have.
func (z *zeroRank[M]) exchange(r *collective.Rank, o *ZeroOptions) error {
	if o.Amax == AmaxNever || r.Ranks() == 1 {
		return nil
	}
	scales := z.model.Shared().Scaling()
	own := scales.StepAmax()
	merged, err := mergeAmaxes(r, own)
	if err != nil {
		return err
	}
	use := &merged
	if o.Amax == AmaxStepBehind {
		if use, z.merged = z.merged, use; use == nil {
			return nil
		}
		use.Histories.Step, use.Backwards = own.Histories.Step, own.Backwards
	}
	return scales.SetStepAmax(*use)
}
