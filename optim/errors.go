package optim

import (
	"errors"

	"github.com/octavo-fp8/octavo/internal/guard"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// What errors of this package are, for [errors.Is]. Their text names the option, the
// parameter or the place, and the value.
var (
	// ErrOption is an option or a learning rate that is out of range.
	ErrOption = errors.New("optim: option")

	// ErrNonFinite is a gradient that is NaN or infinite, or too large for FP32.
	ErrNonFinite = errors.New("optim: gradient is not finite")

	// ErrParams are parameters that are not those of the steps before, or have no
	// values.
	ErrParams = errors.New("optim: parameters")

	// ErrConcurrent is a step of an optimizer while another one has not returned.
	ErrConcurrent = guard.ErrConcurrent

	// ErrState is a saved [State] that no optimizer can have, or that is of one with
	// other options.
	ErrState = errors.New("optim: state")
)

func optionError(format string, args ...any) error {
	return sentinel.Errorf(ErrOption, "optim: "+format, args...)
}

func paramsError(format string, args ...any) error {
	return sentinel.Errorf(ErrParams, "optim: "+format, args...)
}

func stateError(format string, args ...any) error {
	return sentinel.Errorf(ErrState, "optim: "+format, args...)
}
