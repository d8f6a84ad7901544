package hf

import (
	"errors"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// What errors of this package are, for [errors.Is]; others are those of packages checkpoint,
// nn and safetensors. Their text names the file, the field or tensor, and the value.
var (
	// ErrConfig is a configuration of a model that package nn cannot run.
	ErrConfig = errors.New("hf: configuration")

	// ErrTensor is a tensor that is missing, or that a model of this configuration has not.
	ErrTensor = errors.New("hf: tensors do not fit the configuration")
)

func configError(file, format string, args ...any) error {
	return sentinel.Errorf(ErrConfig, "hf: %s: "+format, append([]any{file}, args...)...)
}

func tensorError(format string, args ...any) error {
	return sentinel.Errorf(ErrTensor, "hf: "+format, args...)
}
