package power

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// Blind is what a bound of the errors of elements leaves unseen, as roots of the means of
// squares over the elements that are finite.
type Blind struct {
	Bound  oracle.Number `json:"bound"`
	Result oracle.Number `json:"result"`
	// Product is that of single products with their scales, of some elements.
	Product oracle.Number `json:"product"`
}

// NewBlind compares bounds with the elements of C, of shape [M, N], that are at the given
// places or, where that is nil, with all. It panics if there are not as many bounds as elements.
func NewBlind[T gemm.Output](bound []float64, c []T, at []int, a, b *tensor.Tensor) Blind {
	if len(bound) != len(c) || at != nil && len(at) != len(c) {
		panic(wrongC)
	}
	const tried = 64
	var bounds, results, products mean
	n := max(rowsOf(b), 1)
	fromA, fromB := newMagnitudes(a), newMagnitudes(b)
	every := max(len(c)/tried, 1)
	for i, x := range c {
		v := number.Float64(x)
		if !number.IsFinite(v) || !number.IsFinite(bound[i]) {
			continue
		}
		bounds.add(bound[i])
		results.add(v)
		if i%every != 0 {
			continue
		}
		place := i
		if at != nil {
			place = at[i]
		}
		row := fromB.row(place % n)
		for k, v := range fromA.row(place / n) {
			products.add(float64(v * row[k]))
		}
	}
	return Blind{bounds.root(), results.root(), products.root()}
}

func rowsOf(t *tensor.Tensor) int {
	rows, _ := t.Dims()
	return rows
}

// magnitudes are those of the elements of a tensor; one that is not finite is 0.
type magnitudes struct {
	t      *tensor.Tensor
	table  [256]float64
	values []float64
}

func newMagnitudes(t *tensor.Tensor) *magnitudes {
	m := &magnitudes{t: t}
	for c := range m.table {
		if v := math.Abs(float64(t.Format.Float32(byte(c)))); number.IsFinite(v) {
			m.table[c] = v
		}
	}
	return m
}

// row returns those of row i, until the next call.
func (m *magnitudes) row(i int) []float64 {
	m.values = m.values[:0]
	_, width := m.t.Block.Extents(m.t.Dims())
	s, outer := 0.0, float64(m.t.Outer.Factor(i))
	for k, c := range m.t.Row(i) {
		if k%width == 0 {
			s = float64(m.t.Scale(i, k)) * outer
		}
		v := float64(m.table[c] * s)
		if !number.IsFinite(v) {
			v = 0
		}
		m.values = append(m.values, v)
	}
	return m.values
}

// mean is a mean of squares.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(x float64) {
	m.sum += float64(x * x)
	m.n++
}

func (m *mean) root() oracle.Number { return oracle.Number(math.Sqrt(m.sum / float64(max(m.n, 1)))) }

// String says how large an error may be in one element without being seen.
func (b *Blind) String() string {
	text := fmt.Sprintf("errors of up to %.2g in one element", float64(b.Bound))
	if b.Result > 0 {
		text += fmt.Sprintf(", %.2g of the root mean square of C", float64(b.Bound/b.Result))
	}
	if b.Product > 0 {
		text += fmt.Sprintf(", or %.2g products of the usual size", float64(b.Bound/b.Product))
	}
	return text
}
