package identify

import "errors"

// Errors that a program can tell apart with [errors.Is].
var (
	// ErrSetup is of a [Setup] for which there are no probes.
	ErrSetup = errors.New("identify: there are no probes for this")

	// ErrFile is of a file that holds no probes, or no answers to these.
	ErrFile = errors.New("identify: this holds no probes or answers")
)
