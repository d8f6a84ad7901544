package swiglu

import "errors"

// What an error of this package is about, for [errors.Is]; its text names the place
// and the value.
var (
	ErrSmoothing = errors.New("swiglu: smoothing cannot be used")
	ErrState     = errors.New("swiglu: saved state cannot be right")
	ErrVersion   = errors.New("swiglu: saved state is of another version")
)
