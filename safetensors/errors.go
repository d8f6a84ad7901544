package safetensors

import "errors"

// Errors that a program may want to tell apart, with [errors.Is]. The errors that
// wrap them say which file and tensor it is, and where.
var (
	// ErrFile is what is wrong with a file that is no safetensors file, or not a whole
	// one.
	ErrFile = errors.New("safetensors: malformed file")

	// ErrTooLarge is what is wrong with a tensor that cannot be in memory, since it has
	// more bytes than the machine, and with a header that would be over the limit of
	// the format.
	ErrTooLarge = errors.New("safetensors: too large")
)

// kindError is an error of a kind, with a message of its own.
type kindError struct {
	error
	kind error
}

func (e kindError) Unwrap() []error { return []error{e.error, e.kind} }

// malformed makes err one of kind ErrFile.
func malformed(err error) error { return kindError{err, ErrFile} }

var (
	errNoFile   = errors.New("there is no file: the File is nil")
	errNoReader = errors.New("there is no reader: it is nil")
	errNoWriter = errors.New("there is no writer: it is nil")
	errNoFunc   = errors.New("there is no function to write the data: it is nil")
)
