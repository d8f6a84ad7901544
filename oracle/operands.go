package oracle

import (
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// product is a checked pair of operands.
type product struct {
	grid
	a, b             *tensor.Tensor
	scalesA, scalesB scales
	outers           outers
	block            int    // products that share a pair of scales; at least 1
	run              uint64 // tells products apart
}

// newProduct checks everything about a and b that could go wrong, as package
// gemm does.
func newProduct(a, b *tensor.Tensor) (product, error) {
	size, err := gemm.CheckOperands(a, b)
	if err != nil {
		return product{}, err
	}
	return product{grid{size.M, size.N, size.K}, a, b, scalesOf(a), scalesOf(b), outersOf(a, b), size.Block, runs.Add(1)}, nil
}

// scales are those of an operand, to be read for each block of each element, for which
// [tensor.Tensor.Scale] checks too much.
type scales struct {
	values     []float32
	rows, cols int // of a block
	stride     int // from row to row of the grid
}

func scalesOf(t *tensor.Tensor) scales {
	rows, cols := t.Dims()
	s := scales{values: t.Scales}
	s.rows, s.cols = t.Block.Extents(rows, cols)
	_, s.stride = t.Strides()
	return s
}

// at returns the scale of element k of row i.
func (s *scales) at(i, k int) float32 { return s.values[i/s.rows*s.stride+k/s.cols] }

// blocks is the number of blocks that K is cut into.
func (p *product) blocks() int { return (p.k + p.block - 1) / p.block }

// span returns the products [lo, hi) of block q of K.
func (p *product) span(q int) (lo, hi int) { return q * p.block, min((q+1)*p.block, p.k) }
