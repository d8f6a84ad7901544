package power

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/gemm"
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
	n, k := max(rowsOf(b), 1), 0
	if a != nil {
		_, k = a.Dims()
	}
	every := max(len(c)/tried, 1)
	for i, x := range c {
		v := value(x)
		if !finite(v) || !finite(bound[i]) {
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
		for q := range k {
			products.add(magnitudeAt(a, place/n, q) * magnitudeAt(b, place%n, q))
		}
	}
	return Blind{bounds.root(), results.root(), products.root()}
}

func rowsOf(t *tensor.Tensor) int {
	rows, _ := t.Dims()
	return rows
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
