package collective

import (
	"context"
	"errors"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// What errors of this package are, for [errors.Is]. Their text names the rank, the
// tensor or the option, and the value.
var (
	// ErrInput is an argument or an option that is out of range.
	ErrInput = errors.New("collective: input")

	// ErrMismatch is ranks that do not do the same: one is in another collective than
	// the rank that it hears from, or has returned.
	ErrMismatch = errors.New("collective: ranks do not do the same")
)

func inputError(format string, args ...any) error {
	return sentinel.Errorf(ErrInput, "collective: "+format, args...)
}

func mismatch(format string, args ...any) error {
	return sentinel.Errorf(ErrMismatch, "collective: "+format, args...)
}

// isEnd reports whether an error is that of a context that has ended.
func isEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
