package gemm

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/octavo-fp8/octavo/tensor"
)

// product is a checked pair of operands.
type product struct {
	a, b    operand
	m, n, k int
	block   int // L of step 1; at least 1
}

// newProduct checks everything about a and b that could go wrong. Its errors do
// not name the package yet.
func newProduct[W Weights](a *tensor.Tensor, b W) (product, error) {
	if err := checkOperand(a); err != nil {
		return product{}, err
	}
	switch b := any(b).(type) {
	case *tensor.Tensor:
		if err := checkOperand(b); err != nil {
			return product{}, err
		}
		return pair(a, b, newOperand(b))
	case *Packed:
		if err := b.check(); err != nil {
			return product{}, err
		}
		return pair(a, &b.header, b.operand())
	}
	return product{}, nil
}

func checkOperand(t *tensor.Tensor) error {
	if err := t.Check(); err != nil {
		return err
	}
	return t.CheckScales()
}

// pair checks that two operands go together, of which each by itself is right.
// The codes of b are in operand.
func pair(a, b *tensor.Tensor, operand operand) (product, error) {
	m, ka := a.Dims()
	n, kb := b.Dims()
	if ka != kb {
		return product{}, unequalK(a, b)
	}
	if high, low := bits.Mul64(uint64(m), uint64(n)); high != 0 || low > math.MaxInt {
		return product{}, fmt.Errorf("tensor %q of %d rows and tensor %q of %d rows: a product has too many elements", a.Name, m, b.Name, n)
	}
	block, err := sumBlock(a, b, ka)
	return product{newOperand(a), operand, m, n, ka, block}, err
}

func unequalK(a, b *tensor.Tensor) error {
	return fmt.Errorf("tensor %q of shape %v and tensor %q of shape %v: the last dimensions, along which products are summed, differ",
		a.Name, a.Shape, b.Name, b.Shape)
}

// sumBlock returns L of step 1.
func sumBlock(a, b *tensor.Tensor, k int) (int, error) {
	_, ea := a.Block.Extents(1, k)
	_, eb := b.Block.Extents(1, k)
	for _, t := range []*tensor.Tensor{a, b} {
		if t.Block.Cols == 1 && k > 1 {
			return 0, fmt.Errorf("tensor %q in blocks of %v and tensor %q in blocks of %v: the scales of %q vary from element to element of the sum: requantize it in blocks of %v",
				a.Name, a.Block, b.Name, b.Block, t.Name, tensor.Block{Rows: t.Block.Rows, Cols: remedy(a, b)})
		}
	}
	small, large := min(ea, eb), max(ea, eb)
	if large < k && large%small != 0 {
		return 0, fmt.Errorf("tensor %q in blocks of %v and tensor %q in blocks of %v: neither extent along K divides the other: requantize %q in blocks of %v",
			a.Name, a.Block, b.Name, b.Block, b.Name, tensor.Block{Rows: b.Block.Rows, Cols: a.Block.Cols})
	}
	return small, nil
}

// CheckBlocks returns an error unless operands in blocks of a and of b can be
// multiplied whatever their size: unless their extents along K divide each other
// and none is 1.
func CheckBlocks(a, b tensor.Block) error {
	if _, err := sumBlock(&tensor.Tensor{Name: "a", Block: a}, &tensor.Tensor{Name: "b", Block: b}, math.MaxInt); err != nil {
		return fmt.Errorf("gemm: %w", err)
	}
	return nil
}

// remedy is an extent along K that suits both operands where one has 1: the
// other's, or 128.
func remedy(a, b *tensor.Tensor) int {
	for _, t := range []*tensor.Tensor{a, b} {
		if t.Block.Cols > 1 {
			return t.Block.Cols
		}
	}
	return 128
}
