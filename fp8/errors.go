package fp8

import "errors"

// What an error of this package is about, for [errors.Is]; its text names the
// value.
var (
	ErrFormat = errors.New("fp8: unknown format")
	ErrPolicy = errors.New("fp8: unknown policy")
)
