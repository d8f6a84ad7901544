package layers

import (
	"cmp"
	"context"
	"slices"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/train"
)

// Llama is an [nn.Llama], dense or with experts, on the ranks of a [Layout]: stages of
// layers, slices of those, experts, and shards of batches, each where the layout says, with
// weights, gradients and moments sharded as ZeRO does. Taps see layers, and not the residual
// stream. With one slice, one shard and one micro-batch its bits are those of the model
// itself; in any layout they are those of its [Layout.Twin], as said there.
//
// A layer that is cut has the name of the whole with ".slice.3" in it. The state of scales
// begins anew: those of slices are their own. Not safe for concurrent use.
type Llama struct {
	layout  Layout
	cfg     nn.Config
	parts   []*llamaPart // by rank
	optims  []*optim.AdamW
	order   []movedPart
	norms   []normTerm // of order
	wholes  []nn.Shape
	whole   train.Whole // of a checkpoint
	traffic collective.Traffic

	pass     uint64 // number of the next backward pass
	norm     float64
	gathered bool // layers have the weights that optimizers moved
	ready    bool // there are gradients to move by
}

// movedPart is a part of a parameter of the model, at the rank that adds the squares of its
// gradients up.
type movedPart struct {
	rank   int
	q      *partParam // of that rank
	whole  int        // its parameter's place in the model
	lo, hi int        // elements of q
}

// NewLlama cuts a model. It copies the weights and leaves the model as it is. Optimizer makes
// an [optim.AdamW] for each rank, all with the same options; with nil there is no
// [Llama.Move]. The error is [collective.ErrInput], with the first number that does not divide another.
func NewLlama(model *nn.Llama, l Layout, optimizer func() *optim.AdamW) (*Llama, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if model == nil {
		return nil, inputError("NewLlama without a model")
	}
	m := &Llama{layout: l.withDefaults(), cfg: model.Config()}
	if err := m.layout.checkModel(m.cfg); err != nil {
		return nil, err
	}
	m.wholes = slices.Collect(m.cfg.Shapes())
	rotated := m.cfg.Dim / m.cfg.Heads
	if m.cfg.MLA != nil {
		rotated = m.cfg.MLA.RoPE
	}
	rotary, err := nn.NewScaledRotary(rotated, m.cfg.Context, m.cfg.RopeTheta, m.cfg.RopeScaling)
	if err != nil {
		return nil, err
	}
	for rank := range m.layout.Ranks() {
		p, err := newPart(m.cfg, &m.layout, rank, rotary)
		if err != nil {
			return nil, err
		}
		m.parts = append(m.parts, p)
		if optimizer == nil {
			continue
		}
		o := optimizer()
		if o == nil {
			return nil, inputError("NewLlama: rank %d has no optimizer", rank)
		}
		m.optims = append(m.optims, o)
	}
	m.order = m.normOrder()
	for _, t := range m.order {
		if t.lo < t.hi {
			m.norms = append(m.norms, normTerm{t.rank, t.q.Name, func() []float32 {
				return t.q.moved.Grad[t.lo-t.q.first : t.hi-t.q.first]
			}})
		}
	}
	m.whole.Model = m.layout.describe(model.Describe())
	m.addPieces()
	return m, m.load(model)
}

// load gives ranks their weights.
func (m *Llama) load(model *nn.Llama) error {
	byName := byName(model)
	for _, p := range m.parts {
		for _, q := range p.all() {
			if err := q.Load(byName[q.Of]); err != nil {
				return err
			}
			if m.layout.Zero > 0 {
				copy(q.moved.Value, q.Value[q.first:])
			}
		}
		if m.layout.Zero == 3 {
			p.releaseAll()
		}
	}
	return nil
}

// normOrder returns every gradient once, in the order of the model's parameters, of their
// slices and of their elements.
func (m *Llama) normOrder() (terms []movedPart) {
	place := map[string]int{}
	for i, s := range m.wholes {
		place[s.Name] = i
	}
	type key struct {
		whole    string
		row, col int
	}
	seen := map[key]bool{}
	shards := collective.Slices{Count: m.layout.Shards}
	for rank, p := range m.parts {
		for i, q := range p.params {
			k := key{q.Of, q.Row, q.Col}
			if seen[k] {
				continue
			}
			seen[k] = true
			if m.layout.Zero == 0 {
				terms = append(terms, movedPart{rank, q, place[q.Of], 0, q.Rows * q.Cols})
				continue
			}
			for id, owner := range q.members {
				first, end := shards.Of(id, len(q.members))
				for shard := first; shard < end; shard++ {
					lo, hi := q.cuts[shard], q.cuts[shard+1]
					terms = append(terms, movedPart{owner, m.parts[owner].params[i], place[q.Of], lo, hi})
				}
			}
		}
	}
	slices.SortStableFunc(terms, func(a, b movedPart) int {
		return cmp.Or(cmp.Compare(a.whole, b.whole),
			cmp.Compare(a.q.Row, b.q.Row), cmp.Compare(a.q.Col, b.q.Col))
	})
	return terms
}

// Layout returns the layout, with its defaults filled in.
func (m *Llama) Layout() Layout { return m.layout }

// Shared returns what the layers of a rank share: its routed experts in the second, and all
// others in the first. Reporters and taps may be set between calls.
func (m *Llama) Shared(rank int) (all, experts *nn.Shared) {
	return &m.parts[rank].shared, &m.parts[rank].experts
}

// Traffic returns what has been sent so far.
func (m *Llama) Traffic() collective.Traffic { return m.traffic }

// Gradients computes the mean loss of a batch of sequences of seq tokens, the gradient of it,
// and that gradient's norm. Sequences are cut in shards and these in micro-batches, in
// order; the loss is the mean of theirs, also where targets are [nn.IgnoreIndex], and has no
// balance loss in it. An error names the rank, and the run cannot go on after one.
func (m *Llama) Gradients(
	ctx context.Context, tokens, targets []int32, batch, seq int,
) (loss float32, norm float64, err error) {
	b, err := m.newBatch(tokens, targets, batch, seq)
	if err != nil {
		return 0, 0, err
	}
	m.ready = false
	norms := make([]float64, m.layout.Ranks())
	err = m.run(ctx, func(r *collective.Rank) (err error) {
		p := m.parts[r.ID()]
		if err := p.gradients(r, b, m.gathered); err != nil {
			return err
		}
		norms[r.ID()], err = addNorm(r, m.norms)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	m.norm, m.ready, m.gathered = norms[0], true, true
	m.pass += uint64(len(b.losses))
	return b.loss(), m.norm, nil
}

// Evaluate returns the loss of a batch as Gradients does, and computes no gradients: scales,
// routers and what Gradients has left for Move stay as they are. What ranks send for it is
// traffic as well. The run cannot go on after an error but [collective.ErrInput].
func (m *Llama) Evaluate(
	ctx context.Context, tokens, targets []int32, batch, seq int,
) (loss float32, err error) {
	b, err := m.newBatch(tokens, targets, batch, seq)
	if err != nil {
		return 0, err
	}
	err = m.run(ctx, func(r *collective.Rank) error { return m.parts[r.ID()].evaluate(r, b, m.gathered) })
	if err != nil {
		return 0, err
	}
	m.gathered = true
	return b.loss(), nil
}

func (m *Llama) newBatch(tokens, targets []int32, batch, seq int) (*llamaBatch, error) {
	l := &m.layout
	if err := l.checkBatch(tokens, targets, batch, seq); err != nil {
		return nil, err
	}
	return &llamaBatch{
		tokens: tokens, targets: targets, sequences: batch / (l.Shards * l.Micro), seq: seq,
		firstPass: m.pass, losses: make([]float32, l.Shards*l.Micro),
		shardsOfRank: l.Shards / l.Data, microOfEachShard: l.Micro,
	}, nil
}

// loss returns the mean of those of all micro-batches.
func (b *llamaBatch) loss() float32 {
	var sum float64
	for _, v := range b.losses {
		sum += float64(v)
	}
	return float32(sum / float64(len(b.losses)))
}

// run calls f for all ranks and counts what they send.
func (m *Llama) run(ctx context.Context, f func(r *collective.Rank) error) error {
	traffic, err := collective.Run(ctx, m.layout.Ranks(), f)
	m.traffic.Add(traffic)
	return err
}

// Move moves the weights by the gradient of the last Gradients and the learning rate lr, and
// ends the step of delayed scales and of routers' biases, whose amaxes and loads ranks
// exchange. Where the norm is not finite it is [optim.ErrNonFinite]: nothing has moved, and
// what the step has recorded is dropped.
func (m *Llama) Move(ctx context.Context, lr float64) error {
	if !m.ready || m.optims == nil {
		return inputError("Move without Gradients before it, or without optimizers")
	}
	m.ready = false
	if isSkip(m.norm) {
		for _, p := range m.parts {
			p.shared.Scaling().DropStep()
			p.experts.Scaling().DropStep()
			for _, q := range p.params {
				q.memory.Drop()
			}
		}
		return skipped(m.norm)
	}
	m.gathered = false
	return m.run(ctx, func(r *collective.Rank) error {
		return m.parts[r.ID()].move(r, m.optims[r.ID()], lr, m.norm)
	})
}

// Step is [Llama.Gradients] and [Llama.Move].
func (m *Llama) Step(
	ctx context.Context, tokens, targets []int32, batch, seq int, lr float64,
) (loss float32, norm float64, err error) {
	if loss, norm, err = m.Gradients(ctx, tokens, targets, batch, seq); err == nil {
		err = m.Move(ctx, lr)
	}
	return loss, norm, err
}

// Store writes the FP32 weights, and the gradients of the last Gradients, to a model of the
// same configuration, such as that which was cut.
func (m *Llama) Store(model *nn.Llama) error {
	byName := byName(model)
	for i := 0; i < len(m.order); {
		first := m.order[i]
		n := first.q.Rows * first.q.Cols
		values, grads := make([]float32, n), make([]float32, n)
		for ; i < len(m.order) && m.order[i].q.cut.at() == first.q.cut.at(); i++ {
			t := m.order[i]
			copy(values[t.lo:t.hi], t.q.moved.Value[t.lo-t.q.first:])
			copy(grads[t.lo:t.hi], t.q.moved.Grad[t.lo-t.q.first:])
		}
		whole := byName[first.q.Of]
		if whole == nil {
			return inputError("%q: the model has no such parameter", first.q.Of)
		}
		if err := first.q.Store(whole.Value, whole, values); err != nil {
			return err
		}
		if err := first.q.Store(whole.Grad, whole, grads); err != nil {
			return err
		}
	}
	return nil
}

func byName(model *nn.Llama) map[string]*nn.Param {
	params := map[string]*nn.Param{}
	for _, p := range model.Params() {
		params[p.Name] = p
	}
	return params
}
