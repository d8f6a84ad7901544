package power

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/tensor"
)

// chunk is the number of k that are looked at together.
const chunk = 256

// top is the largest of some scores and where it is.
type top struct {
	lambda float64
	at, k  int
	column bool
}

func (t *top) take(lambda float64, at, k int, column bool) {
	if lambda > t.lambda {
		*t = top{lambda, at, k, column}
	}
}

// alongK tests whether deviations go with the signs of what products are made of.
func (p *population) alongK(ctx context.Context, f []float64, o *Options) ([]family, error) {
	n := p.norms(f)
	chunks := (p.k + chunk - 1) / chunk
	products, codes := make([]top, chunks), make([]top, chunks)
	var m meter.Meter
	m.Start(ctx, o.Progress, "along k", int64(chunks))
	parallel.For(chunks, 1, o.Workers, func(lo, hi int) {
		for q := lo; q < hi && m.Err() == nil; q++ {
			p.chunkOf(q, f, n, &products[q], &codes[q])
			_ = m.Add(1) // an end of ctx is seen by Err
		}
	})
	if err := m.Err(); err != nil {
		return nil, fmt.Errorf("power: %w", err)
	}
	var product, code top
	for q := range chunks {
		product.take(products[q].lambda, 0, products[q].k, false)
		code.take(codes[q].lambda, codes[q].at, codes[q].k, codes[q].column)
	}
	return []family{
		{name: "products", n: p.k, lambda: []float64{product.lambda}, chance: -1, many: true, again: func(f []float64) float64 {
			return p.productAt(f, product.k)
		}, where: func(int) string {
			return fmt.Sprintf("k = %d", product.k)
		}},
		{name: "codes", n: (p.m + p.n) * p.k, lambda: []float64{code.lambda}, chance: -1, many: true, again: func(f []float64) float64 {
			return p.codeAt(f, code)
		}, where: func(int) string {
			if code.column {
				return fmt.Sprintf("row %d of B at k = %d", code.at, code.k)
			}
			return fmt.Sprintf("row %d of A at k = %d", code.at, code.k)
		}},
	}, nil
}

// norms are sums over rows, columns and all of C.
type norms struct {
	rows, cols               []float64 // of squares of classes
	rowsAllowed, colsAllowed []float64
	all, allAllowed          float64
}

func (p *population) norms(f []float64) *norms {
	n := &norms{rows: make([]float64, p.m), cols: make([]float64, p.n), rowsAllowed: make([]float64, p.m), colsAllowed: make([]float64, p.n)}
	q := p.newSquarer()
	for i := range p.m {
		for j := range p.n {
			at := i*p.n + j
			q.add(at, f[at])
			allowed := p.reach[at] + p.shared[at]
			n.rowsAllowed[i] += allowed
			n.colsAllowed[j] += allowed
			n.allAllowed += allowed
		}
		n.rows[i] = q.squares()
	}
	for j := range p.n {
		for i := range p.m {
			q.add(i*p.n+j, f[i*p.n+j])
		}
		n.cols[j] = q.squares()
	}
	for at, x := range f {
		q.add(at, x)
	}
	n.all = q.squares()
	return n
}

// chunkOf looks at a chunk of K.
func (p *population) chunkOf(q int, f []float64, n *norms, product, code *top) {
	k0, k1 := q*chunk, min((q+1)*chunk, p.k)
	w := k1 - k0
	x, y := p.signs(p.a, k0, k1), p.signs(p.b, k0, k1)
	total, sum := make([]float64, w), make([]float64, w)
	near := newPrefixes(w)
	for i := range p.m {
		if n.rows[i] == 0 {
			continue // nothing is off
		}
		clear(sum)
		addSigned(sum, y, f[i*p.n:(i+1)*p.n], 1)
		near.clear()
		for _, at := range p.ties.rows[i] {
			near.add(y[at%p.n*w:][:w], p.ties.step[at])
		}
		for k, s := range sum {
			total[k] += float64(s * x[i*w+k])
			code.take(normalized(s, n.rowsAllowed[i]+near.most[k], n.rows[i]), i, k0+k, false)
		}
	}
	near.clear()
	both := make([]float64, w)
	for _, at := range p.ties.near[0] {
		signProducts(both, x[at/p.n*w:][:w], y[at%p.n*w:][:w])
		near.add(both, p.ties.step[at])
	}
	for k, s := range total {
		product.take(normalized(s, n.allAllowed+near.most[k], n.all), 0, k0+k, false)
	}
	for j := range p.n {
		if n.cols[j] == 0 {
			continue
		}
		clear(sum)
		addSigned(sum, x, f[j:], p.n)
		near.clear()
		for _, at := range p.ties.cols[j] {
			near.add(x[at/p.n*w:][:w], p.ties.step[at])
		}
		for k, s := range sum {
			code.take(normalized(s, n.colsAllowed[j]+near.most[k], n.cols[j]), j, k0+k, true)
		}
	}
}

// prefixes are sums of elements near ties for each k, and their largest magnitudes so
// far: see [ties.allowed].
type prefixes struct{ sum, most []float64 }

func newPrefixes(w int) *prefixes { return &prefixes{make([]float64, w), make([]float64, w)} }

func (p *prefixes) clear() {
	clear(p.sum)
	clear(p.most)
}

func (p *prefixes) add(signs []float64, step float64) {
	sum, most := p.sum[:len(signs)], p.most[:len(signs)]
	for k, s := range signs {
		x := sum[k] + float64(s*step)
		sum[k] = x
		most[k] = max(most[k], math.Abs(x))
	}
}

// signProducts writes the products of signs.
func signProducts(z, x, y []float64) {
	x, y = x[:len(z)], y[:len(z)]
	for k := range z {
		z[k] = float64(x[k] * y[k])
	}
}

// addSigned adds rows of signs, each times one of f's numbers, stride apart.
func addSigned(sum, signs, f []float64, stride int) {
	w := len(sum)
	for len(signs) >= 4*w && len(f) > 3*stride {
		v0, v1, v2, v3 := f[0], f[stride], f[2*stride], f[3*stride]
		s0, s1, s2, s3 := signs[:w], signs[w:2*w], signs[2*w:3*w], signs[3*w:4*w]
		for k := range sum {
			sum[k] += (float64(v0*s0[k]) + float64(v1*s1[k])) + (float64(v2*s2[k]) + float64(v3*s3[k]))
		}
		signs, f = signs[4*w:], f[min(4*stride, len(f)):]
	}
	for len(signs) >= w && len(f) > 0 {
		for k, s := range signs[:w] {
			sum[k] += float64(f[0] * s)
		}
		signs, f = signs[w:], f[min(stride, len(f)):]
	}
}

// signs returns the signs of columns [k0, k1) of t, which is p.a or p.b; a code that is 0
// or not a number has none.
func (p *population) signs(t *tensor.Tensor, k0, k1 int) []float64 {
	table := &p.signsA
	if t == p.b {
		table = &p.signsB
	}
	rows, _ := t.Dims()
	all := make([]float64, 0, rows*(k1-k0))
	for i := range rows {
		for _, c := range t.Row(i)[k0:k1] {
			all = append(all, table[c])
		}
	}
	return all
}

// signTable has the sign of each code.
func signTable(f fp8.Format) (table [256]float64) {
	for c := range table {
		if v := float64(f.Float32(byte(c))); v == v && v != 0 {
			table[c] = math.Copysign(1, v)
		}
	}
	return table
}

// productAt is the statistic of product k.
func (p *population) productAt(f []float64, k int) float64 {
	if p.k == 0 {
		return 0
	}
	weight := p.productWeight(k)
	sum := 0.0
	for at, v := range f {
		sum += float64(v * weight(at))
	}
	n := p.norms(f)
	return normalized(sum, n.allAllowed+p.ties.allowed(p.ties.near[0], weight), n.all)
}

// productWeight is the sign of product k of each element.
func (p *population) productWeight(k int) func(at int) float64 {
	x, y := p.signs(p.a, k, k+1), p.signs(p.b, k, k+1)
	return func(at int) float64 { return x[at/p.n] * y[at%p.n] }
}

// codeAt is the statistic of a code.
func (p *population) codeAt(f []float64, t top) float64 {
	if p.k == 0 {
		return 0
	}
	n := p.norms(f)
	weight, near := p.codeWeight(t)
	sum, allowed, squares := 0.0, n.rowsAllowed, n.rows
	if t.column {
		allowed, squares = n.colsAllowed, n.cols
		for at := t.at; at < len(f); at += p.n {
			sum += float64(f[at] * weight(at))
		}
	} else {
		for at := t.at * p.n; at < (t.at+1)*p.n; at++ {
			sum += float64(f[at] * weight(at))
		}
	}
	return normalized(sum, allowed[t.at]+p.ties.allowed(near, weight), squares[t.at])
}

// codeWeight is the sign of the code of the other operand by which a code is multiplied
// in each element of its row or column of C, and which of those are near ties.
func (p *population) codeWeight(t top) (weight func(at int) float64, near []int) {
	if t.column {
		x := p.signs(p.a, t.k, t.k+1)
		return func(at int) float64 { return x[at/p.n] }, p.ties.cols[t.at]
	}
	y := p.signs(p.b, t.k, t.k+1)
	return func(at int) float64 { return y[at%p.n] }, p.ties.rows[t.at]
}
