package gemm

import (
	"math"
	"math/bits"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Size is that of a product: C is [M, N], and each of its elements is the sum of K
// products, in blocks of Block that share a pair of scales, L in the description of
// this package; at least 1.
type Size struct{ M, N, K, Block int }

// CheckOperands returns the size of the product A·Bᵀ of two tensors, or the error for
// which [Multiply] would refuse them, without the package's name before it. It looks at
// all scales, but not at codes.
func CheckOperands(a, b *tensor.Tensor) (Size, error) {
	for _, t := range []*tensor.Tensor{a, b} {
		if err := checkOperand(t); err != nil {
			return Size{}, err
		}
	}
	return sizeOf(a, b)
}

// checkOperand checks everything about an operand by itself: that it is whole and
// that no scale is one that its format lacks.
func checkOperand(t *tensor.Tensor) error {
	if err := checkForm(t); err != nil {
		return err
	}
	return t.CheckScales()
}

// checkForm checks that an operand is there and whole.
func checkForm(t *tensor.Tensor) error {
	if t == nil {
		return sentinel.Errorf(tensor.ErrShape, "an operand is nil")
	}
	return t.Check()
}

// sizeOf checks that two operands, of which each by itself is right, go together. It
// does not look at their codes.
func sizeOf(a, b *tensor.Tensor) (Size, error) {
	m, ka := a.Dims()
	n, kb := b.Dims()
	if ka != kb {
		return Size{}, unequalK(a, b)
	}
	if high, low := bits.Mul64(uint64(m), uint64(n)); high != 0 || low > math.MaxInt {
		return Size{}, sentinel.Errorf(ErrOperands, "tensor %q of %d rows and tensor %q of %d rows: a product has too many elements", a.Name, m, b.Name, n)
	}
	if err := checkAlpha(a, b); err != nil {
		return Size{}, err
	}
	block, err := sumBlock(a, b, ka)
	return Size{m, n, ka, block}, err
}

// unequalK is the error of operands whose K differ.
func unequalK(a, b *tensor.Tensor) error {
	return sentinel.Errorf(ErrOperands, "tensor %q of shape %v and tensor %q of shape %v: the last dimensions, along which products are summed, differ",
		a.Name, a.Shape, b.Name, b.Shape)
}

// sumBlock returns the length of the blocks that K is cut into: the smaller of the
// operands' extents along K, of which the larger must be a multiple.
func sumBlock(a, b *tensor.Tensor, k int) (int, error) {
	_, ea := a.Block.Extents(1, k)
	_, eb := b.Block.Extents(1, k)
	for _, t := range []*tensor.Tensor{a, b} {
		if t.Block.Cols == 1 && k > 1 {
			return 0, sentinel.Errorf(ErrBlocks, "tensor %q in blocks of %v and tensor %q in blocks of %v: the scales of %q vary from element to element of the sum: requantize it in blocks of %v",
				a.Name, a.Block, b.Name, b.Block, t.Name, tensor.Block{Rows: t.Block.Rows, Cols: remedy(a, b)})
		}
	}
	small, large := min(ea, eb), max(ea, eb)
	if large < k && large%small != 0 {
		return 0, sentinel.Errorf(ErrBlocks, "tensor %q in blocks of %v and tensor %q in blocks of %v: neither extent along K divides the other: requantize %q in blocks of %v",
			a.Name, a.Block, b.Name, b.Block, b.Name, tensor.Block{Rows: b.Block.Rows, Cols: a.Block.Cols})
	}
	return small, nil
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
