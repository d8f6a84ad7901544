package attention

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/halves"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Gradients are where [Backward] writes: nil is not computed.
type Gradients struct {
	Q     []float32 // [Heads, Queries, Dim]
	K     []float32 // [KVHeads, tokens, Dim]; 0 from Problem.Keys on
	V     []float32 // [KVHeads, tokens, ValueDim]; likewise
	Sinks []float32 // [Heads], of a problem with sinks
}

// Backward writes the gradients of the dequantized operands to g, from dOut, that of the
// output, and from the output and the log-sum-exp that [Forward] gave, all of them laid out
// as there. It computes probabilities again (Dao, arXiv 2307.08691), in float32 all along:
//
//	s_ij = scale·(Q_i·K_j)        e_i = lse_i, or m+log(exp(lse_i-m)+exp(sink-m)), m the larger
//	P_ij = exp(s_ij-e_i)          D_i = dOut_i·out_i
//	dS_ij = P_ij·(dOut_i·V_j-D_i)
//	dQ_i = scale·sum dS_ij·K_j    dK_j = scale·sum dS_ij·Q_i    dV_j = sum P_ij·dOut_i
//	dSink = sum of -exp(sink-e_i)·D_i
//
// With a cap, s_ij = cap·t_ij with t_ij = tanh((scale/cap)·(Q_i·K_j)), and dS_ij is times
// 1-t_ij².
//
// Every operation is rounded. Products and sums are dot products in the order of package
// gemm's step 2 with rounded products: those over keys and over queries in tiles of 64 from
// the first, which are added in order, of the query heads of a key's head one after the
// other; exp and log are those of package elementary. Masked pairs take no part.
//
// The bits do not depend on the machine, nor on Options.Workers, the only option that counts.
// Errors are those of [Forward], and one for sinks' gradients of a problem without sinks
// ([ErrMask]). Nothing of g may overlap anything else.
func Backward(
	ctx context.Context, g Gradients, p *Problem, out, lse, dOut []float32, o Options,
) error {
	b := backwards.Get().(*backward)
	defer b.drop()
	if err := b.checked.ofProblem(p); err != nil {
		return err
	}
	if g.Sinks != nil && p.Sinks == nil {
		return fmt.Errorf("%w: gradients of sinks are asked for, and there are none", ErrMask)
	}
	if o.Workers < 0 {
		return fmt.Errorf("attention: %d workers: want at least 0", o.Workers)
	}
	_, b.tokens, _ = p.K.Dims()
	b.s, b.scale, b.capped, b.limit, b.mask = b.checked.sizes, p.SoftmaxScale(), b.checked.capped, p.Cap, p.Mask
	b.g, b.dOut, b.ctx = g, dOut, ctx
	if err := b.checkLengths(out, lse); err != nil {
		return err
	}
	if err := meter.Err(ctx); err != nil {
		return inPackage(err)
	}
	b.q, b.k, b.v = values(b.q, p.Q), values(b.k, p.K), values(b.v, p.V)
	b.beginRows(p.Sinks, out, lse)
	b.keys = false
	if g.Q != nil {
		b.queue.Run(b.s.Heads*ceilDiv(b.s.Queries, tile), o.Workers, b)
	}
	b.keys = true
	if g.K != nil || g.V != nil {
		b.queue.Run(b.s.KVHeads*ceilDiv(b.tokens, tile), o.Workers, b)
	}
	if err := meter.Err(ctx); err != nil {
		return inPackage(err)
	}
	return nil
}

// backward is a Backward at work. It is reused.
type backward struct {
	ctx     context.Context
	checked computation // what Forward would compute
	s       Sizes
	tokens  int // keys with those that do not count
	scale   float32
	capped  float32 // scale/limit; 0 without a limit
	limit   float32 // the cap
	mask    Mask
	g       Gradients
	q, k, v []float32 // dequantized
	dOut    []float32
	sums, d []float32 // e and D of each row
	queue   parallel.Queue
	keys    bool // jobs are tiles of keys, and not of queries
}

var backwards = sync.Pool{New: func() any { return new(backward) }}

func (b *backward) drop() {
	b.ctx, b.g, b.dOut = nil, Gradients{}, nil
	b.checked.drop()
	backwards.Put(b)
}

func (b *backward) checkLengths(out, lse []float32) error {
	s := b.s
	for _, c := range []struct {
		what      string
		got, want int
		wanted    bool
	}{
		{"out", len(out), s.Heads * s.Queries * s.ValueDim, true},
		{"dOut", len(b.dOut), s.Heads * s.Queries * s.ValueDim, true},
		{"lse", len(lse), s.Heads * s.Queries, true},
		{"the gradient of Q", len(b.g.Q), s.Heads * s.Queries * s.Dim, b.g.Q != nil},
		{"the gradient of K", len(b.g.K), s.KVHeads * b.tokens * s.Dim, b.g.K != nil},
		{"the gradient of V", len(b.g.V), s.KVHeads * b.tokens * s.ValueDim, b.g.V != nil},
		{"the gradient of the sinks", len(b.g.Sinks), s.Heads, b.g.Sinks != nil},
	} {
		if c.wanted && c.got != c.want {
			return sentinel.Length(ErrShape, "attention: "+c.what, c.got, c.want)
		}
	}
	return nil
}

// values writes an operand's values to dst or, if that is too short, to new memory.
func values(dst []float32, o Operand) []float32 {
	heads, tokens, dim := o.Dims()
	dst = grow(dst, heads*tokens*dim)
	if o.Codes != nil {
		tensor.Dequantize(dst, o.Codes)
		return dst
	}
	halves.Widen(dst[copy(dst, o.Float32):], o.BFloat16)
	return dst
}

// beginRows computes e and D of every row, and the gradients of sinks.
func (b *backward) beginRows(sinks, out, lse []float32) {
	s := b.s
	b.sums, b.d = grow(b.sums, len(lse)), grow(b.d, len(lse))
	clear(b.g.Sinks)
	for row, e := range lse {
		h, i := row/s.Queries, row%s.Queries
		b.d[row] = canonical.Dot(b.dOut[row*s.ValueDim:][:s.ValueDim],
			out[row*s.ValueDim:][:s.ValueDim])
		if lo, hi := b.mask.Range(i, s.Queries, s.Keys); lo == hi {
			continue
		}
		if sinks != nil {
			m := max(e, sinks[h])
			e = m + elementary.Log(elementary.Exp(e-m)+elementary.Exp(sinks[h]-m))
			if b.g.Sinks != nil {
				share := float32(elementary.Exp(sinks[h]-e) * b.d[row])
				b.g.Sinks[h] = number.Canonical(b.g.Sinks[h] - share)
			}
		}
		b.sums[row] = e
	}
}

// Work computes tiles until there are none left or the context has ended. It is for the
// queue.
func (b *backward) Work(q *parallel.Queue) {
	w := pairPool.Get().(*pairs)
	defer pairPool.Put(w)
	for job, ok := q.Next(); ok && b.ctx.Err() == nil; job, ok = q.Next() {
		if b.keys {
			each := ceilDiv(b.tokens, tile)
			b.keyTile(w, job/each, job%each*tile)
		} else {
			each := ceilDiv(b.s.Queries, tile)
			b.queryTile(w, job/each, job%each*tile)
		}
	}
}

// queryTile computes dQ of queries of a head from i0 on.
func (b *backward) queryTile(w *pairs, h, i0 int) {
	s := b.s
	i1 := min(i0+tile, s.Queries)
	to := b.g.Q[(h*s.Queries+i0)*s.Dim : (h*s.Queries+i1)*s.Dim]
	clear(to)
	for j0 := 0; j0 < s.Keys; j0 += tile {
		if j1 := min(j0+tile, s.Keys); w.set(b, h, i0, i1, j0, j1) {
			keys := b.k[(s.KVHead(h)*b.tokens+j0)*s.Dim:]
			w.add(to, canonical.Dense(w.ds[:], tile), keys, i1-i0, j1-j0, s.Dim)
		}
	}
	multiply(to, b.scale)
}

// keyTile computes dK and dV of keys of a head from j0 on.
func (b *backward) keyTile(w *pairs, kvHead, j0 int) {
	s := b.s
	j1 := min(j0+tile, s.Keys)
	at, end := kvHead*b.tokens+j0, kvHead*b.tokens+min(j0+tile, b.tokens)
	var dk, dv []float32
	if b.g.K != nil {
		dk = b.g.K[at*s.Dim : end*s.Dim]
		clear(dk)
	}
	if b.g.V != nil {
		dv = b.g.V[at*s.ValueDim : end*s.ValueDim]
		clear(dv)
	}
	group := s.Heads / s.KVHeads
	for h := kvHead * group; h < (kvHead+1)*group && j0 < j1; h++ {
		for i0 := 0; i0 < s.Queries; i0 += tile {
			i1 := min(i0+tile, s.Queries)
			if !w.set(b, h, i0, i1, j0, j1) {
				continue
			}
			row := h*s.Queries + i0
			if dv != nil {
				w.add(dv, canonical.Dense(w.p[:], tile).T(), b.dOut[row*s.ValueDim:],
					j1-j0, i1-i0, s.ValueDim)
			}
			if dk != nil {
				w.add(dk, canonical.Dense(w.ds[:], tile).T(), b.q[row*s.Dim:], j1-j0, i1-i0, s.Dim)
			}
		}
	}
	multiply(dk, b.scale)
	for i, x := range dv {
		dv[i] = number.Canonical(x)
	}
}

// multiply multiplies every value by a factor, and makes NaNs canonical.
func multiply(x []float32, factor float32) {
	for i, v := range x {
		x[i] = number.Canonical(v * factor)
	}
}

// pairs is P and dS of a tile of queries by a tile of keys, 0 where a pair is masked.
type pairs struct {
	p, ds    [tile * tile]float32
	from, to [tile]int // keys that each query sees
	whole    bool      // every query sees every key
	product  []float32
}

var pairPool = sync.Pool{New: func() any { return new(pairs) }}

// set computes the pairs of queries [i0, i1) of a head and keys [j0, j1), and reports whether
// any is not masked.
func (w *pairs) set(b *backward, h, i0, i1, j0, j1 int) bool {
	s, n := b.s, j1-j0
	seen := false
	w.whole = true
	for i := i0; i < i1; i++ {
		lo, hi := b.mask.Range(i, s.Queries, s.Keys)
		lo, hi = min(max(lo, j0), j1)-j0, min(hi, j1)-j0
		w.from[i-i0], w.to[i-i0] = lo, max(lo, hi)
		seen, w.whole = seen || lo < hi, w.whole && lo == 0 && hi == n
	}
	if !seen {
		return false
	}
	row, key := h*s.Queries+i0, s.KVHead(h)*b.tokens+j0
	canonical.Multiply(canonical.Dense(w.p[:], tile), canonical.Dense(b.q[row*s.Dim:], s.Dim),
		canonical.Dense(b.k[key*s.Dim:], s.Dim), i1-i0, n, s.Dim, 1)
	canonical.Multiply(canonical.Dense(w.ds[:], tile),
		canonical.Dense(b.dOut[row*s.ValueDim:], s.ValueDim),
		canonical.Dense(b.v[key*s.ValueDim:], s.ValueDim), i1-i0, n, s.ValueDim, 1)
	for i := range i1 - i0 {
		p, ds, lo, hi := w.p[i*tile:][:n], w.ds[i*tile:][:n], w.from[i], w.to[i]
		clear(p[:lo])
		clear(p[hi:])
		clear(ds[:lo])
		clear(ds[hi:])
		for j := lo; j < hi; j++ {
			ds[j] -= b.d[row+i]
			if b.capped == 0 {
				p[j] *= b.scale
				continue
			}
			t := elementary.Tanh(p[j] * b.capped)
			p[j] = b.limit * t
			ds[j] *= 1 - float32(t*t)
		}
		elementary.ExpTo(p[lo:hi], p[lo:hi], b.sums[row+i], 1, 1)
		for j := lo; j < hi; j++ {
			ds[j] *= p[j]
		}
	}
	return true
}

// add adds the product of a, [m, k] of w's values, with rows of n values to sums, [m, n].
func (w *pairs) add(sums []float32, a canonical.Matrix, rows []float32, m, k, n int) {
	w.product = grow(w.product, m*n)
	amax, nan := fp8.Amax(rows[:k*n])
	if w.whole || !nan && amax <= math.MaxFloat32 {
		canonical.Multiply(canonical.Dense(w.product, n), a, canonical.Dense(rows, n).T(),
			m, n, k, 1)
	} else {
		w.multiplyKept(a, rows, m, k, n)
	}
	for i, x := range w.product {
		sums[i] += x
	}
}

// multiplyKept is the product without the pairs that are masked, whose 0 would not make a NaN
// or an infinity one.
func (w *pairs) multiplyKept(a canonical.Matrix, rows []float32, m, k, n int) {
	var x, y [tile]float32
	for i := range m {
		for d := range n {
			for j := range k {
				query, key := i, j
				if a.Transposed {
					query, key = j, i
				}
				x[j], y[j] = 0, 0
				if w.from[query] <= key && key < w.to[query] {
					x[j], y[j] = a.Data[query*tile+key], rows[j*n+d]
				}
			}
			w.product[i*n+d] = canonical.Dot(x[:k], y[:k])
		}
	}
}
