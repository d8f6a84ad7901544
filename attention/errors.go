package attention

import (
	"errors"

	"github.com/octavo-fp8/octavo/internal/guard"
)

// What an error of this package is about, for [errors.Is]; its text names the operand,
// the place and the value. What is wrong with one tensor by itself is an error of package
// tensor: [tensor.ErrShape] or [tensor.ErrScale].
var (
	// ErrShape: heads, tokens or dimensions of the operands do not fit together.
	ErrShape = errors.New("attention: shapes do not fit together")

	// ErrScales: scales of an operand that cannot be applied where they are.
	ErrScales = errors.New("attention: scales cannot be applied")

	// ErrConcurrent: tokens are appended to a sequence while others are.
	ErrConcurrent = guard.ErrConcurrent

	// ErrMask: a mask or a sink that is not defined.
	ErrMask = errors.New("attention: the mask or the sinks are not defined")
)
