package oracle

import (
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/tensor"
)

// product is a checked pair of operands.
type product struct {
	a, b    *tensor.Tensor
	m, n, k int
	block   int // products that share a pair of scales; at least 1
}

// newProduct checks everything about a and b that could go wrong, as package
// gemm does.
func newProduct(a, b *tensor.Tensor) (product, error) {
	for _, t := range []*tensor.Tensor{a, b} {
		if err := operands.Check(t); err != nil {
			return product{}, err
		}
	}
	size, err := operands.Pair(a, b)
	return product{a, b, size.M, size.N, size.K, size.Block}, err
}

// blocks is the number of blocks that K is cut into.
func (p *product) blocks() int { return (p.k + p.block - 1) / p.block }

// span returns the products [lo, hi) of block q of K.
func (p *product) span(q int) (lo, hi int) { return q * p.block, min((q+1)*p.block, p.k) }

// The result is computed in tiles, whose rows of A and B are decoded once.
const tileRows, tileCols = 32, 16

// tiles calls work for every tile of the result, on several goroutines. Results
// cannot depend on their number, since no two tiles share an element.
func (p *product) tiles(workers int, work func(i0, i1, j0, j1 int)) {
	if p.m == 0 || p.n == 0 {
		return
	}
	bands, columns := (p.m+tileRows-1)/tileRows, (p.n+tileCols-1)/tileCols
	parallel.For(bands*columns, 1, workers, func(lo, hi int) {
		for t := lo; t < hi; t++ {
			i0, j0 := t/columns*tileRows, t%columns*tileCols
			work(i0, min(i0+tileRows, p.m), j0, min(j0+tileCols, p.n))
		}
	})
}
