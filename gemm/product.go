package gemm

import (
	"fmt"
	"math"

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

// pair is the product of two operands of which each by itself is right. The codes
// of b are in operand.
func pair(a, b *tensor.Tensor, operand operand) (product, error) {
	size, err := sizeOf(a, b)
	return product{newOperand(a), operand, size.M, size.N, size.K, size.Block}, err
}

// CheckBlocks returns an error unless operands in blocks of a and of b can be
// multiplied whatever their size: unless their extents along K divide each other
// and none is 1.
func CheckBlocks(a, b tensor.Block) error {
	ta, tb := &tensor.Tensor{Name: "a", Block: a}, &tensor.Tensor{Name: "b", Block: b}
	for _, t := range []*tensor.Tensor{ta, tb} {
		if err := t.CheckShape(); err != nil {
			return fmt.Errorf("gemm: %w", err)
		}
	}
	if _, err := sumBlock(ta, tb, math.MaxInt); err != nil {
		return fmt.Errorf("gemm: %w", err)
	}
	return nil
}
