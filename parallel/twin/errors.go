package twin

import (
	"errors"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

var (
	// ErrInput is an argument or a fault that makes no sense.
	ErrInput = errors.New("twin: input")

	// ErrNotRepeatable is a run that does not do the same when it is done again.
	ErrNotRepeatable = errors.New("twin: a run cannot be repeated")

	// ErrEnough is what [Recorder.EndStep] returns where no further step is needed. A Run
	// returns it as any other error.
	ErrEnough = errors.New("twin: no further step is needed")
)

func inputError(format string, args ...any) error {
	return sentinel.Errorf(ErrInput, "twin: "+format, args...)
}

func notRepeatable(format string, args ...any) error {
	return sentinel.Errorf(ErrNotRepeatable, "twin: "+format, args...)
}
