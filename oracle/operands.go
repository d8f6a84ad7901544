package oracle

import (
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// product is a checked pair of operands.
type product struct {
	grid
	a, b  *tensor.Tensor
	block int // products that share a pair of scales; at least 1
}

// newProduct checks everything about a and b that could go wrong, as package
// gemm does.
func newProduct(a, b *tensor.Tensor) (product, error) {
	size, err := gemm.CheckOperands(a, b)
	return product{grid{size.M, size.N, size.K}, a, b, size.Block}, err
}

// blocks is the number of blocks that K is cut into.
func (p *product) blocks() int { return (p.k + p.block - 1) / p.block }

// span returns the products [lo, hi) of block q of K.
func (p *product) span(q int) (lo, hi int) { return q * p.block, min((q+1)*p.block, p.k) }
