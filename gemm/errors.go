package gemm

import "errors"

// What an error of this package is about, for [errors.Is]; its text names the tensors
// and says what would do. What is wrong with one tensor by itself is an error of
// package tensor: [tensor.ErrShape] or [tensor.ErrScale].
var (
	// ErrBlocks: the operands are scaled in blocks that cannot go together along K.
	ErrBlocks = errors.New("gemm: blocks cannot go together")

	// ErrOperands: the operands are not those of one product, or not those of as many
	// as there are groups; the product of their outer scales is infinite, or 0 where
	// neither is; or packed weights were not made by [Pack].
	ErrOperands = errors.New("gemm: operands cannot be multiplied")
)
