package generate

import (
	"errors"
	"fmt"

	"github.com/octavo-fp8/octavo/internal/guard"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// What errors of this package are, for [errors.Is]. Their text names the option, the request
// or the token, the value and what it must be.
var (
	// ErrOptions is an option that a generator or a choice of tokens cannot have.
	ErrOptions = errors.New("generate: options")

	// ErrBatch is a recipe under which a request's bits depend on what it is run with.
	ErrBatch = errors.New("generate: the recipe is not batch-invariant")

	// ErrInput is a request that does not fit: tokens out of range, none, or too many.
	ErrInput = errors.New("generate: input")

	// ErrConcurrent is a call of a generator while another one has not returned.
	ErrConcurrent = guard.ErrConcurrent

	// ErrNotFinite is keys, values or logits that are NaN or infinite.
	ErrNotFinite = errors.New("generate: logits are not finite")
)

func optionError(format string, args ...any) error {
	return sentinel.Errorf(ErrOptions, "generate: "+format, args...)
}

func inputError(format string, args ...any) error {
	return sentinel.Errorf(ErrInput, "generate: "+format, args...)
}

// named puts the name of a request or a sequence, if it has one, in front of an error.
func named(name string, err error) error {
	if name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}
