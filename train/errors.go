package train

import (
	"errors"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// What errors of this package are, for [errors.Is]. Their text names the file, tensor
// or field, and the value.
var (
	// ErrCheckpoint is a file that is no checkpoint or a damaged one.
	ErrCheckpoint = errors.New("train: no checkpoint, or a damaged one")

	// ErrVersion is a checkpoint or a saved state of a version that is not read.
	ErrVersion = errors.New("train: version")

	// ErrMismatch is a checkpoint of another model or another optimizer than the one
	// to be restored, or replicas that differ.
	ErrMismatch = errors.New("train: mismatch")

	// ErrInput is an argument or an option that is out of range.
	ErrInput = collective.ErrInput
)

func damaged(format string, args ...any) error {
	return sentinel.Errorf(ErrCheckpoint, format, args...)
}

func mismatch(format string, args ...any) error {
	return sentinel.Errorf(ErrMismatch, format, args...)
}

func versionError(format string, args ...any) error {
	return sentinel.Errorf(ErrVersion, format, args...)
}

func inputError(format string, args ...any) error {
	return sentinel.Errorf(ErrInput, format, args...)
}
