package oracle

import "errors"

// Errors that a program can tell apart with [errors.Is]. Those of operands are of
// packages tensor and gemm.
var (
	// ErrModel is of a [Model] or [Kernel] that no hardware is described by, or that
	// does not multiply such operands: another format, scales or blocks.
	ErrModel = errors.New("oracle: the model cannot multiply this")

	// ErrFloat is of a matrix of floats of no format, of another than its counterpart's,
	// or with a number that its format has not.
	ErrFloat = errors.New("oracle: no operand in BF16, FP16 or TF32")

	// ErrNonFinite is of operands with a NaN or an infinity where [Checksums] are
	// asked for: these are of integers only.
	ErrNonFinite = errors.New("oracle: a NaN or an infinity has no checksum")
)
