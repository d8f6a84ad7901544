package hf

import (
	"errors"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/nn"
)

// What errors of this package are, for [errors.Is]; others are those of packages checkpoint,
// nn and safetensors. Their text names the file, the field or tensor, and the value.
var (
	// ErrConfig is a configuration of a model that package nn cannot run.
	ErrConfig = errors.New("hf: configuration")

	// ErrTensor is a tensor that is missing, or that a model of this configuration has not.
	ErrTensor = errors.New("hf: tensors do not fit the configuration")

	// ErrNotFinite is an input of a layer that is NaN or infinite, which has no scale.
	ErrNotFinite = errors.New("hf: activation is not finite")
)

func configError(file, format string, args ...any) error {
	return sentinel.Errorf(ErrConfig, "hf: %s: "+format, append([]any{file}, args...)...)
}

func tensorError(format string, args ...any) error {
	return sentinel.Errorf(ErrTensor, "hf: "+format, args...)
}

func notFinite(format string, args ...any) error {
	return sentinel.Errorf(ErrNotFinite, "hf: "+format, args...)
}

func inputError(format string, args ...any) error {
	return sentinel.Errorf(nn.ErrInput, "hf: "+format, args...)
}
