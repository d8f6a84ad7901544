package flash

import (
	"math"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/tensor"
)

// heads reads the operands of a problem in float64, for bounds.
type heads struct {
	p       *attention.Problem
	s       attention.Sizes
	q, k, v operand
	scale   float64 // of scores
	// scalings is the relative error of scaling and adding the sums of blocks of D, beyond
	// that of one pair of scales.
	scalings float64
	// alignedScores and alignedValues say that magnitudes are those that a matrix
	// instruction aligns: of subnormal codes those of the least normal number.
	alignedScores, alignedValues bool
}

func newHeads(p *attention.Problem, alignedScores, alignedValues bool) *heads {
	h := &heads{p: p, s: p.Sizes(), q: newOperand(p.Q), k: newOperand(p.K), v: newOperand(p.V),
		scale:         float64(p.SoftmaxScale()),
		alignedScores: alignedScores, alignedValues: alignedValues}
	if extent := min(h.q.extent(), h.k.extent()); extent < h.s.Dim {
		h.scalings = gamma((h.s.Dim+extent-1)/extent + 3)
	}
	return h
}

// keysValues are K and V of a head.
type keysValues struct {
	k, v *matrix
	// whole are magnitudes of V under the largest scale of their column.
	whole   []float64
	largest float64 // scale of V
}

func (h *heads) head(kv int) *keysValues {
	r := &keysValues{k: newMatrix(h.k, kv, h.s.Keys, h.alignedScores),
		v: newMatrix(h.v, kv, h.s.Keys, h.alignedValues), largest: 1}
	r.whole = r.v.magnitude
	if h.v.scattered() {
		return r // values carry their scales
	}
	if h.v.byToken() {
		r.lift(h.v.Codes, h.v.row(kv, 0), h.s.Keys)
	} else if h.v.Codes != nil && h.s.Keys > 0 {
		for c := range h.v.dim {
			r.largest = max(r.largest, scaleOf(h.v.Codes, h.v.row(kv, 0), c))
		}
	}
	return r
}

// lift fills whole where scales differ from token to token.
func (r *keysValues) lift(t *tensor.Tensor, from, tokens int) {
	dim := r.v.dim
	r.whole = make([]float64, len(r.v.magnitude))
	top := make([]float64, dim)
	for i := range tokens {
		for c := range top {
			top[c] = max(top[c], scaleOf(t, from+i, c))
			r.largest = max(r.largest, top[c])
		}
	}
	for i := range tokens {
		for c, most := range top {
			if s := scaleOf(t, from+i, c); s > 0 {
				r.whole[i*dim+c] = r.v.magnitude[i*dim+c] / s * most
			}
		}
	}
}

// matrix is an operand's rows: exact values, and their magnitudes.
type matrix struct {
	dim              int
	value, magnitude []float64
}

// newMatrix decodes the first tokens of a head.
func newMatrix(o operand, head, tokens int, aligned bool) *matrix {
	m := &matrix{dim: o.dim, value: make([]float64, tokens*o.dim),
		magnitude: make([]float64, tokens*o.dim)}
	for i := range tokens {
		o.exact(m.value[i*o.dim:][:o.dim], m.magnitude[i*o.dim:][:o.dim], o.row(head, i), aligned)
	}
	return m
}

// exact decodes a row under its scales, and its magnitudes.
func (o *operand) exact(to, size []float64, row int, aligned bool) {
	if o.Codes == nil {
		for c, x := range o.BFloat16[row*o.dim:][:o.dim] {
			to[c] = float64(x.Float32())
			size[c] = math.Abs(to[c])
		}
		return
	}
	t, extent, s, least := o.Codes, o.extent(), 0.0, 0.0
	if aligned {
		least = float64(t.Format.MinNormal())
	}
	for c, code := range t.Row(row) {
		if c%extent == 0 {
			s = scaleOf(t, row, c)
		}
		x := float64(t.Format.Float32(code))
		to[c], size[c] = x*s, 0
		if x != 0 {
			size[c] = max(math.Abs(x), least) * s
		}
	}
}

// scaleOf is what the code at row i, column c is multiplied by.
func scaleOf(t *tensor.Tensor, i, c int) float64 { return float64(t.Scale(i, c)) * outerOf(t, i) }

// outerOf is the outer scale of row i, unrounded.
func outerOf(t *tensor.Tensor, i int) float64 {
	switch {
	case t.Outer.None():
		return 1
	case t.Outer.Divide:
		return 1 / float64(t.Outer.At(i))
	}
	return float64(t.Outer.At(i))
}
