package scaling

import "errors"

// What an error of this package is about, for [errors.Is]; its text names the
// tensor, the place and the value.
var (
	ErrRecipe  = errors.New("scaling: recipe cannot be used")
	ErrHistory = errors.New("scaling: history is missing, or of another recipe or grid")
	ErrState   = errors.New("scaling: saved state cannot be right")
	ErrVersion = errors.New("scaling: saved state is of another version")
)

var errNil = errors.New("scaling: the tensor is nil")
