package nn

import (
	"context"
	"math"
	"strings"
	"sync/atomic"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/swiglu"
)

// mixing is causal softmax attention of queries, keys and values of many heads: what lies
// between the projections of an attention, and how the input of the last one is kept.
type mixing struct {
	// Sinks, [1, heads], zeros at first, are the scores of keys without a value; nil: none.
	Sinks *Param

	layer            string // its name in taps
	dim              int    // of what goes in and comes out
	rotary           *Rotary
	heads, kvHeads   int
	keyDim, valueDim int // of a head's query or key, and of its value

	scale   float32 // of the scores
	cap     float32 // of the scores; 0: none
	window  int     // how many tokens a token sees; 0: all
	workers int
	shared  *Shared
	scratch *scratch
	policy  Policy

	inE5M6  *keptE5M6      // mixed, where that is so kept
	rounder *resultRounder // of softmax
	sums    sums

	batch, seq int
	restored   bool // what is not kept, for the backward pass
	*projections
	mixed    *[]float32 // the values that attention has weighted
	probs    []float32  // [batch, heads, seq, seq], zero above the diagonal
	hasProbs bool       // of the last Forward

	// Of each row of probs: the probability of the sink; and of each head of a sequence the
	// gradient of the sink.
	sinkProbs, dSinks []float32

	own struct { // memory
		projections
		mixed []float32
	}
}

func newMixing(prefix string, dim int, r *Rotary, heads, kvHeads, keyDim, valueDim int, s Scores, o Options) mixing {
	m := mixing{
		layer: strings.TrimSuffix(prefix, "."), dim: dim, rotary: r, heads: heads, kvHeads: kvHeads, keyDim: keyDim, valueDim: valueDim,
		scale:   float32(1 / math.Sqrt(float64(keyDim))),
		workers: o.Workers,
		shared:  o.Shared,
		scratch: &o.Shared.scratch,
		policy:  o.keeping(),
		rounder: newResultRounder(o.Operators.Softmax, 1),
		sums:    newSums(o.Operators.Reductions),
	}
	if s.Scale != 0 {
		m.scale = float32(s.Scale)
	}
	m.cap, m.window = float32(s.Cap), s.Window
	if s.Sinks {
		m.Sinks = newParam(prefix+"sinks", 1, heads)
		m.Sinks.Decay = false
	}
	if o.Activations.keepsTiles() {
		m.inE5M6 = &keptE5M6{workers: o.Workers}
	}
	return m
}

// check returns an error unless x and y are of so many sequences, which are not too
// long.
func (m *mixing) check(y, x []float32, batch, seq int) error {
	n, ok := product(batch, seq, m.dim)
	_, scores := product(batch, m.heads, seq, seq)
	_, wide := product(batch, seq, m.heads, max(m.keyDim, m.valueDim))
	switch {
	case batch <= 0 || seq <= 0 || !ok || uint64(len(x)) != n || len(y) != len(x):
		return inputError("%s: an input of %d and an output of %d elements are not %d sequences of %d rows of %d",
			m.layer, len(x), len(y), batch, seq, m.dim)
	case m.rotary != nil && seq > m.rotary.context:
		return inputError("%s: seq is %d: its rotary positions are for %d", m.layer, seq, m.rotary.context)
	case !scores || !wide:
		return inputError("%s: the scores of %d sequences of %d are too many", m.layer, batch, seq)
	}
	return nil
}

// begin begins a forward pass and returns memory of queries, keys and values.
func (m *mixing) begin(batch, seq int) (q, k, v []float32) {
	m.batch, m.seq, m.restored = batch, seq, false
	training, rows := m.shared.training(), batch*seq
	m.projections = choose(training && m.policy.Projections == Keep, &m.own.projections, &m.scratch.projections)
	m.mixed = choose(training && m.policy.Mixed == Keep, &m.own.mixed, &m.scratch.mixed)
	q = sized(&m.q, rows*m.heads*m.keyDim)
	k = sized(&m.k, rows*m.kvHeads*m.keyDim)
	return q, k, sized(&m.v, rows*m.kvHeads*m.valueDim)
}

// attend writes to y what output makes of the attention of q, k and v.
func (m *mixing) attend(ctx context.Context, y []float32, output *Linear) error {
	rows := m.batch * m.seq
	m.shared.tap(m.layer, ".query", m.q, rows)
	m.shared.tap(m.layer, ".key", m.k, rows)
	m.shared.tap(m.layer, ".value", m.v, rows)
	if err := m.mix(ctx); err != nil {
		return err
	}
	m.shared.tap(m.layer, ".mixed", *m.mixed, rows)
	if err := output.multiply(ctx, y, *m.mixed, rows, swiglu.Scales{}, nil); err != nil {
		return err
	}
	switch { // in training, keep the input of output
	case m.inE5M6 == nil:
		return output.keep(ctx, *m.mixed, rows, nil)
	case m.shared.training():
		m.inE5M6.keep(*m.mixed, rows, m.heads*m.valueDim)
	}
	return nil
}

// mix computes mixed, and probs if they are kept and not there yet, from q, k and v.
func (m *mixing) mix(ctx context.Context) error {
	m.hasProbs = m.policy.Probabilities == Keep && m.shared.training()
	if m.hasProbs {
		sized(&m.probs, m.batch*m.heads*m.seq*m.seq)
	}
	sized(m.mixed, m.batch*m.seq*m.heads*m.valueDim)
	if m.Sinks != nil {
		sized(&m.sinkProbs, m.batch*m.heads*m.seq)
	}
	return m.eachGroup(ctx, (*headGroup).forward)
}

// eachGroup calls do for each sequence and head of keys and values.
func (m *mixing) eachGroup(ctx context.Context, do func(*headGroup)) error {
	heads := m.kvHeads
	var failed atomic.Pointer[error]
	parallel.For(m.batch*heads, 1, m.workers, func(lo, hi int) {
		group := newHeadGroup(m)
		for i := lo; i < hi; i++ {
			if err := meter.Err(ctx); err != nil {
				failed.Store(&err)
				return
			}
			group.at(i/heads, i%heads)
			do(group)
		}
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// restore computes mixed again where it is not kept, and where its values are needed.
func (m *mixing) restore(ctx context.Context, values bool, output *Linear) error {
	if m.policy.Mixed == Recompute || values && m.policy.Mixed != Keep {
		if err := m.mix(ctx); err != nil {
			return err
		}
	}
	if m.policy.Mixed == Recompute {
		output.restore(*m.mixed, m.batch*m.seq)
	}
	return nil
}

// outputAgain writes to y again what output made of mixed, whose values must be there.
func (m *mixing) outputAgain(ctx context.Context, y []float32, output *Linear) error {
	return output.multiply(ctx, y, *m.mixed, m.batch*m.seq, swiglu.Scales{}, nil)
}

// attendBackward computes dq, dk and dv from the gradient dy of what attend wrote.
func (m *mixing) attendBackward(ctx context.Context, dy []float32, output *Linear) error {
	rows, s, n := m.batch*m.seq, m.scratch, m.batch*m.seq*m.heads*m.valueDim
	if m.inE5M6 != nil {
		m.inE5M6.restore(sized(m.mixed, n))
		output.restore(*m.mixed, rows)
	}
	if err := output.Backward(ctx, sized(&s.dMixed, n), dy); err != nil {
		return err
	}
	sized(&s.dq, len(m.q))
	clear(sized(&s.dk, len(m.k)))
	clear(sized(&s.dv, len(m.v)))
	if m.Sinks != nil {
		sized(&m.dSinks, m.batch*m.heads)
	}
	if err := m.eachGroup(ctx, (*headGroup).backward); err != nil {
		return err
	}
	if m.Sinks != nil {
		for i, d := range m.dSinks {
			m.Sinks.Grad[i%m.heads] += d
		}
	}
	m.shared.tap(m.layer, ".query_gradient", s.dq, rows)
	m.shared.tap(m.layer, ".key_gradient", s.dk, rows)
	m.shared.tap(m.layer, ".value_gradient", s.dv, rows)
	return nil
}

func (m *mixing) countActivations(n *ActivationBytes) {
	if m.policy.Projections == Keep {
		n.floats(m.q, m.k, m.v)
	}
	n.floats(m.probs, m.sinkProbs)
	if m.inE5M6 != nil {
		n.Codes += len(m.inE5M6.codes)
		n.Scales += 4 * len(m.inE5M6.scales)
	}
	if m.policy.Mixed == Keep {
		n.floats(*m.mixed)
	}
}
