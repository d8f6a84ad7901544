package evaluate

import (
	"errors"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// What errors of this package are, for [errors.Is]; others are those of package nn and of
// contexts.
var (
	// ErrOptions is an option that cannot be.
	ErrOptions = errors.New("evaluate: options")

	// ErrTokens are tokens that the model does not have, or too few of them.
	ErrTokens = errors.New("evaluate: tokens")

	// ErrModel is a model whose logits are not finite though nothing is quantized.
	ErrModel = errors.New("evaluate: model")

	// ErrState is a state that is damaged, or of another run.
	ErrState = errors.New("evaluate: state")
)

func optionError(format string, args ...any) error {
	return sentinel.Errorf(ErrOptions, "evaluate: "+format, args...)
}

func tokenError(format string, args ...any) error {
	return sentinel.Errorf(ErrTokens, "evaluate: "+format, args...)
}

func modelError(format string, args ...any) error {
	return sentinel.Errorf(ErrModel, "evaluate: "+format, args...)
}

func stateError(format string, args ...any) error {
	return sentinel.Errorf(ErrState, "evaluate: "+format, args...)
}
