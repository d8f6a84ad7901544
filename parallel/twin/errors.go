package twin

import (
	"errors"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

var (
	// ErrNotRepeatable is a run that does not do the same when it is done again.
	ErrNotRepeatable = errors.New("twin: a run cannot be repeated")

	// errEnough is what [Recorder.EndStep] returns where no further step is needed.
	errEnough = errors.New("twin: no further step is needed")
)

func inputError(format string, args ...any) error {
	return sentinel.Errorf(collective.ErrInput, "twin: "+format, args...)
}

func notRepeatable(format string, args ...any) error {
	return sentinel.Errorf(ErrNotRepeatable, "twin: "+format, args...)
}
