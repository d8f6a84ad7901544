package flash

import (
	"context"
	"math"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/number"
)

// Result is exact attention, for the rows that were asked for.
type Result[T Output] struct {
	Out     []T       // [rows, ValueDim]
	Max     []float64 // [rows], the largest scale·q·k of kept keys, natural units
	LSE     []float64 // [rows], natural, without the sink
	SinkLSE []float64 // [rows], with it; nil where the problem has no sinks
}

// Exact returns softmax(scale·Q·Kᵀ)·V under the mask and with the sinks, and the largest
// score and the logarithm of the sum of exponentials of each row, all of them the exact
// real numbers rounded once, to nearest even. Operands are codes times scales, times or
// divided by outer scales, never rounded; the scale is p.SoftmaxScale().
//
// A row without kept keys has output 0, sink or not, maximum and log-sum-exp -Inf, and
// with its sink the log-sum-exp that this is. A NaN among a row's scores makes all its
// results NaN, a score of +Inf its output. Keys with a score of -Inf have weight 0, and
// where all have, and there is no sink, the output is NaN. A NaN among the values of kept
// keys makes its column NaN, as do infinities of both signs or of a key with weight 0;
// others remain. An exact zero is +0, and a result that underflows keeps its sign.
//
// Rounding is proven: results are computed in 53 or 106 bits with a bound of their error,
// and where that bound leaves two numbers to choose from, it is decided by the sign of a
// sum of exponentials, in exact arithmetic where all terms cancel and else in as many bits
// as it takes. Few results need that, and they take milliseconds.
//
// Errors are those of p.Check, [ErrKernel] for a problem with a cap or of float32 operands,
// [ErrRows], and that of ctx when it ends. It takes memory of 4 bytes for each element of a
// head of K and V.
func Exact[T Output](ctx context.Context, p *attention.Problem, o Options) (*Result[T], error) {
	if err := checkProblem(p); err != nil {
		return nil, err
	}
	x := newExactly(p)
	rows, err := o.rows(x.s)
	if err != nil {
		return nil, err
	}
	r := &Result[T]{Out: make([]T, len(rows)*x.s.ValueDim), Max: make([]float64, len(rows)),
		LSE: make([]float64, len(rows))}
	if p.Sinks != nil {
		r.SinkLSE = make([]float64, len(rows))
	}
	count := meter.New(ctx, o.Progress, "exact", int64(len(rows)))
	err = byHead(rows, x.s, func(kv, from, to int) error {
		head := x.head(kv)
		return each(ctx, from, to, o.Workers, count, func() *exactRow { return newExactRow(x, head) },
			func(w *exactRow, at int) {
				e := w.begin(rows[at]/x.s.Queries, rows[at]%x.s.Queries)
				r.Max[at], r.LSE[at] = e.max, e.lse
				if r.SinkLSE != nil {
					r.SinkLSE[at] = e.sinkLSE
				}
				exactOut(w, r.Out[at*x.s.ValueDim:][:x.s.ValueDim])
			})
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// exactly is a problem whose exact answer is wanted.
type exactly struct {
	p       *attention.Problem
	s       attention.Sizes
	q, k, v operand
	scale   float64
	step    int  // columns that share the scales of Q and of K
	plain   bool // sums of products of codes are exact in float64
}

func newExactly(p *attention.Problem) *exactly {
	x := &exactly{p: p, s: p.Sizes(), q: newOperand(p.Q), k: newOperand(p.K), v: newOperand(p.V),
		scale: float64(p.SoftmaxScale())}
	x.step = common(x.q.extent(), x.k.extent(), x.s.Dim)
	if q, k := x.q.Codes, x.k.Codes; q != nil && k != nil {
		x.plain = plain(q.Format, k.Format, x.s.Dim)
	}
	return x
}

// common is the largest number of columns that lie in one block of a and one of b wherever
// they begin at a multiple of it: all of them, or the greatest common divisor.
func common(a, b, all int) int {
	switch {
	case a >= all:
		return b
	case b >= all:
		return a
	}
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// exactHead is a head of K and V, decoded.
type exactHead struct {
	keys   []float32 // [keys, D]
	norms  []float64 // of the keys, scales included, outer ones not
	values []float32 // [keys, DV]
	firstK int       // row of the first token
	firstV int
	finite bool // all values are, with their scales
}

func (x *exactly) head(kv int) *exactHead {
	h := &exactHead{keys: x.k.head(kv, x.s.Keys), values: x.v.head(kv, x.s.Keys),
		norms:  make([]float64, x.s.Keys),
		firstK: x.k.row(kv, 0), firstV: x.v.row(kv, 0), finite: true}
	for j := range h.norms {
		h.norms[j] = norm(&x.k, h.keys[j*x.s.Dim:][:x.s.Dim], h.firstK+j, x.step)
	}
	step := x.v.extent()
	for j := range x.s.Keys {
		row := h.values[j*x.s.ValueDim:][:x.s.ValueDim]
		for d, v := range row {
			if !number.IsFinite(v) || d%step == 0 && !number.IsFinite(x.v.scale(h.firstV+j, d)) {
				h.finite = false
			}
		}
	}
	return h
}

// norm is the Euclidean norm of a row, and a little more.
func norm(o *operand, values []float32, row, step int) float64 {
	var sum float64
	for from := 0; from < len(values); from += step {
		var part float64
		for _, v := range values[from:min(from+step, len(values))] {
			part += float64(v) * float64(v)
		}
		s := float64(o.scale(row, from))
		sum += part * s * s
	}
	return math.Sqrt(sum) * (1 + 0x1p-30)
}

// outerFactor is what an outer scale multiplies a row by.
func (o *operand) outerFactor(row int) twofold {
	if !o.outer() {
		return twofold{1, 0}
	}
	outer := float64(o.Codes.Outer.At(row))
	if o.Codes.Outer.Divide {
		return twofold{1, 0}.overFloat(outer)
	}
	return twofold{outer, 0}
}
