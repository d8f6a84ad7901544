// Package sentinel makes errors that a program can tell apart, by [errors.Is], from
// one of a few values, and whose text is only what a reader needs.
package sentinel

import "fmt"

type failure struct {
	error // the text, and what else it wraps
	kind  error
}

// Errorf returns an error with the text of [fmt.Errorf] that is kind, and is what
// the text wraps with %w.
func Errorf(kind error, format string, args ...any) error {
	return &failure{fmt.Errorf(format, args...), kind}
}

// Length returns nil if what is named, such as "gemm: C", has as many elements as it must, and
// otherwise an error that is kind.
func Length(kind error, what string, got, want int) error {
	if got == want {
		return nil
	}
	return Errorf(kind, "%s has %d elements: it must have %d", what, got, want)
}

// Unwrap returns the kind and the error that has the text.
func (f *failure) Unwrap() []error { return []error{f.kind, f.error} }
