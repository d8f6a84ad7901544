package flash

import "errors"

// What an error of this package is about, for [errors.Is]. Those of problems are of
// packages attention and tensor.
var (
	// ErrKernel: a [Kernel] that is none, or that does not compute this problem.
	ErrKernel = errors.New("flash: the kernel cannot compute this")

	// ErrRows: rows or a place that the problem does not have.
	ErrRows = errors.New("flash: the problem has no such row")
)
