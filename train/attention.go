package train

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

	batch, seq int
	q, k, v    []float32 // [batch·seq, heads·headDim] or kvHeads·headDim; q and k rotated
	probs      []float32 // [batch, heads, seq, seq], zero above the diagonal
	mixed, out []float32

	dq, dk, dv, dMixed, dx, part []float32
}

func newAttention(prefix string, rope *rope, cfg Config) *attention {
	return &attention{
		query:   newLinear(prefix+"q_proj.weight", cfg.Dim, cfg.Dim, cfg),
		key:     newLinear(prefix+"k_proj.weight", cfg.kvDim(), cfg.Dim, cfg),
		value:   newLinear(prefix+"v_proj.weight", cfg.kvDim(), cfg.Dim, cfg),
		output:  newLinear(prefix+"o_proj.weight", cfg.Dim, cfg.Dim, cfg),
		rope:    rope,
		heads:   cfg.Heads,
		kvHeads: cfg.KVHeads,
		headDim: cfg.headDim(),
		scale:   float32(1 / math.Sqrt(float64(cfg.headDim()))),
		workers: cfg.Workers,
	}
}

// forward returns a slice like x, [batch·seq, dim], that stays valid until the
// next call. It keeps x, which must stay as it is until backward.
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
	out := sized(&a.out, len(x))
	return out, a.output.Forward(out, a.mixed, rows)
}

// mix computes probs and mixed from q, k and v.
func (a *attention) mix() {
	sized(&a.probs, a.batch*a.heads*a.seq*a.seq)
	sized(&a.mixed, len(a.q))
	parallel.For(a.batch*a.kvHeads, 1, a.workers, func(lo, hi int) {
		group := newHeadGroup(a)
		for i := lo; i < hi; i++ {
			group.at(i/a.kvHeads, i%a.kvHeads)
			group.forward()
		}
	})
}

// backward returns the gradient of x, valid until the next call, from that of
// what forward returned.
func (a *attention) backward(dy []float32) ([]float32, error) {
	if err := a.output.Backward(sized(&a.dMixed, len(a.mixed)), dy); err != nil {
		return nil, err
	}
	a.mixBackward()
	a.rope.backward(a.dq, a.heads, a.seq)
	a.rope.backward(a.dk, a.kvHeads, a.seq)

	dx, part := sized(&a.dx, len(dy)), sized(&a.part, len(dy))
	if err := a.query.Backward(dx, a.dq); err != nil {
		return nil, err
	}
	if err := a.key.Backward(part, a.dk); err != nil {
		return nil, err
	}
	add(dx, dx, part, a.workers)
	if err := a.value.Backward(part, a.dv); err != nil {
		return nil, err
	}
	add(dx, dx, part, a.workers)
	return dx, nil
}

// mixBackward computes dq, dk and dv from dMixed.
func (a *attention) mixBackward() {
	sized(&a.dq, len(a.q))
	clear(sized(&a.dk, len(a.k)))
	clear(sized(&a.dv, len(a.v)))
	parallel.For(a.batch*a.kvHeads, 1, a.workers, func(lo, hi int) {
		group := newHeadGroup(a)
		for i := lo; i < hi; i++ {
			group.at(i/a.kvHeads, i%a.kvHeads)
			group.backward()
		}
	})
}
