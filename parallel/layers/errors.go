package layers

import (
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

func inputError(format string, args ...any) error {
	return sentinel.Errorf(collective.ErrInput, "layers: "+format, args...)
}
