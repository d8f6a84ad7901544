package scaling

import "github.com/octavo-fp8/octavo/internal/enum"

// Role is what a tensor is in a linear layer's products.
type Role uint8

const (
	Input    Role = iota // activations
	Weight               // parameters
	Gradient             // of the output
)

var roles = enum.Enum[Role]{Type: "Role", What: "role", Names: []string{"input", "weight", "gradient"}, Err: ErrRecipe, Prefix: "scaling"}

// String returns the text of r, such as "weight".
func (r Role) String() string                   { return roles.String(r) }
func (r Role) MarshalText() ([]byte, error)     { return roles.MarshalText(r) }
func (r *Role) UnmarshalText(text []byte) error { return roles.UnmarshalText(r, text) }

const unknownRole = "scaling: unknown role"

// mustBeKnown is for functions that return no error.
func (r Role) mustBeKnown() {
	if !roles.Valid(r) {
		panic(unknownRole)
	}
}
