package nn

import (
	"errors"

	"github.com/octavo-fp8/octavo/internal/guard"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// What errors of this package are, for [errors.Is]. Their text names the layer or
// field, the value and what it must be.
var (
	// ErrConfig is an option or a size that a layer or a model cannot have.
	ErrConfig = errors.New("nn: configuration")

	// ErrInput is an argument of Forward, Backward or a loss that does not fit the
	// layer: a wrong length, a token out of range, or a Backward without its Forward.
	ErrInput = errors.New("nn: input")

	// ErrConcurrent is a pass of a model while another one has not returned.
	ErrConcurrent = guard.ErrConcurrent

	// ErrState is a saved [ScalingState] that is not that of the model, or is damaged.
	ErrState = errors.New("nn: scaling state")
)

func configError(format string, args ...any) error {
	return sentinel.Errorf(ErrConfig, "nn: "+format, args...)
}

func inputError(format string, args ...any) error {
	return sentinel.Errorf(ErrInput, "nn: "+format, args...)
}

func stateError(format string, args ...any) error {
	return sentinel.Errorf(ErrState, "nn: "+format, args...)
}
