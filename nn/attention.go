package nn

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/parallel"
)

// attention is causal self-attention (Vaswani et al., arXiv 1706.03762) with
// rotary positions and grouped queries (Ainslie et al., arXiv 2305.13245): heads
// query heads share kvHeads heads of keys and values, in consecutive groups.
type attention struct {
	query, key, value, output *Linear

	rope                    *rope
	heads, kvHeads, headDim int
	scale                   float32 // of the scores
	workers                 int
	scratch                 *scratch
	inputs                  *inputs

	batch, seq int
	q, k, v    []float32 // [batch·seq, heads·headDim] or kvHeads·headDim; q and k rotated
	keepsProbs bool      // or else computes them again
	probs      []float32 // [batch, heads, seq, seq], zero above the diagonal
}

func newAttention(prefix string, rope *rope, cfg Config, in *inputs, s *scratch) *attention {
	return &attention{
		query:      newLinear(prefix+"q_proj.weight", cfg.Dim, cfg.Dim, cfg, s),
		key:        newLinear(prefix+"k_proj.weight", cfg.kvDim(), cfg.Dim, cfg, s),
		value:      newLinear(prefix+"v_proj.weight", cfg.kvDim(), cfg.Dim, cfg, s),
		output:     newLinear(prefix+"o_proj.weight", cfg.Dim, cfg.Dim, cfg, s),
		rope:       rope,
		heads:      cfg.Heads,
		kvHeads:    cfg.KVHeads,
		headDim:    cfg.headDim(),
		scale:      float32(1 / math.Sqrt(float64(cfg.headDim()))),
		workers:    cfg.Workers,
		scratch:    s,
		inputs:     in,
		keepsProbs: cfg.Activations.keepsInputs(),
	}
}

// forward returns a slice like x, [batch·seq, dim], that stays valid until the
// next call of any layer. It keeps x, which must stay as it is until keep or
// backward.
func (a *attention) forward(x []float32, batch, seq int) ([]float32, error) {
	a.batch, a.seq = batch, seq
	rows := batch * seq
	q := sized(&a.q, rows*a.heads*a.headDim)
	k := sized(&a.k, rows*a.kvHeads*a.headDim)
	v := sized(&a.v, len(k))
	if err := a.query.Forward(q, x, rows); err != nil {
		return nil, err
	}
	if err := a.key.Forward(k, x, rows); err != nil {
		return nil, err
	}
	if err := a.value.Forward(v, x, rows); err != nil {
		return nil, err
	}
	a.rope.forward(q, a.heads, seq)
	a.rope.forward(k, a.kvHeads, seq)
	a.mix()
	out := sized(&a.scratch.branch, len(x))
	return out, a.output.Forward(out, a.inputs.mixed, rows)
}

// keep keeps the inputs of the linear layers in FP8, after forward and before
// backward: their memory is free then.
func (a *attention) keep() error {
	if err := keepInput(a.query, a.key, a.value); err != nil {
		return err
	}
	return keepInput(a.output)
}

// mix computes mixed, and probs if they are kept, from q, k and v.
func (a *attention) mix() {
	if a.keepsProbs {
		sized(&a.probs, a.batch*a.heads*a.seq*a.seq)
	}
	sized(&a.inputs.mixed, len(a.q))
	parallel.For(a.batch*a.kvHeads, 1, a.workers, func(lo, hi int) {
		group := newHeadGroup(a)
		for i := lo; i < hi; i++ {
			group.at(i/a.kvHeads, i%a.kvHeads)
			group.forward()
		}
	})
}

// backward returns the gradient of x, valid until the next call of any layer, from
// that of what forward returned.
func (a *attention) backward(dy []float32) ([]float32, error) {
	s := a.scratch
	if err := a.output.Backward(sized(&s.dMixed, len(a.q)), dy); err != nil {
		return nil, err
	}
	a.mixBackward()
	a.rope.backward(s.dq, a.heads, a.seq)
	a.rope.backward(s.dk, a.kvHeads, a.seq)

	dx, part := sized(&s.dx, len(dy)), sized(&s.part, len(dy))
	if err := a.query.Backward(dx, s.dq); err != nil {
		return nil, err
	}
	if err := a.key.Backward(part, s.dk); err != nil {
		return nil, err
	}
	add(dx, dx, part, a.workers)
	if err := a.value.Backward(part, s.dv); err != nil {
		return nil, err
	}
	add(dx, dx, part, a.workers)
	return dx, nil
}

// mixBackward computes dq, dk and dv from dMixed.
func (a *attention) mixBackward() {
	sized(&a.scratch.dq, len(a.q))
	clear(sized(&a.scratch.dk, len(a.k)))
	clear(sized(&a.scratch.dv, len(a.v)))
	parallel.For(a.batch*a.kvHeads, 1, a.workers, func(lo, hi int) {
		group := newHeadGroup(a)
		for i := lo; i < hi; i++ {
			group.at(i/a.kvHeads, i%a.kvHeads)
			group.backward()
		}
	})
}
