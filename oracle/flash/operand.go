package flash

import (
	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
)

// operand reads one of Q, K and V. Its tokens are rows: token t of head h is row
// h·tokens+t.
type operand struct {
	attention.Operand
	heads, tokens, dim int
}

func newOperand(o attention.Operand) operand {
	r := operand{Operand: o}
	r.heads, r.tokens, r.dim = o.Dims()
	return r
}

func (o *operand) row(head, token int) int { return head*o.tokens + token }

// decode writes the row's codes as numbers, or its values.
func (o *operand) decode(dst []float32, row int) {
	if o.Codes != nil {
		fp8.Decode(dst, o.Codes.Row(row), o.Codes.Format)
		return
	}
	for i, v := range o.BFloat16[row*o.dim:][:o.dim] {
		dst[i] = v.Float32()
	}
}

// head returns the first n tokens of a head, decoded.
func (o *operand) head(head, n int) []float32 {
	values := make([]float32, n*o.dim)
	for t := range n {
		o.decode(values[t*o.dim:][:o.dim], o.row(head, t))
	}
	return values
}

// scale returns the scale of the block of column col of a row, without outer ones.
func (o *operand) scale(row, col int) float32 {
	if o.Codes == nil {
		return 1
	}
	return o.Codes.Scale(row, col)
}

// extent returns how many columns share a scale, at most all of them.
func (o *operand) extent() int {
	if o.Codes == nil {
		return max(o.dim, 1)
	}
	_, cols := o.Codes.Block.Extents(o.heads*o.tokens, o.dim)
	return min(cols, max(o.dim, 1))
}

// byToken reports whether tokens of a head may have different scales.
func (o *operand) byToken() bool {
	if o.Codes == nil || o.tokens == 0 {
		return false
	}
	all := o.heads * o.tokens
	rows, _ := o.Codes.Block.Extents(all, o.dim)
	return rows < all && rows%o.tokens != 0
}

// scattered reports whether scales of V can be taken neither to P nor to the output.
func (o *operand) scattered() bool { return o.byToken() && o.extent() < o.dim || o.outer() }

func (o *operand) outer() bool { return o.Codes != nil && !o.Codes.Outer.None() }

// plain reports whether sums of n products of codes of both formats are exact in float64
// in whatever order.
func plain(a, b fp8.Format, n int) bool {
	most := float64(a.Max()) * float64(b.Max()) * float64(n)
	return most < 1<<53*float64(a.MinSubnormal())*float64(b.MinSubnormal())
}
