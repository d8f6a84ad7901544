package scaling

import "github.com/octavo-fp8/octavo/internal/enum"

// AmaxAlgorithm is how one amax is taken from a history.
type AmaxAlgorithm uint8

const (
	AmaxMax        AmaxAlgorithm = iota // the largest of the history; NaN left out
	AmaxMostRecent                      // that of the last step
)

var algorithms = enum.Enum[AmaxAlgorithm]{
	Type: "AmaxAlgorithm", What: "amax algorithm", Names: []string{"max", "most-recent"}, Err: ErrRecipe, Prefix: "scaling",
}

// String returns the text of a, such as "most-recent".
func (a AmaxAlgorithm) String() string                   { return algorithms.String(a) }
func (a AmaxAlgorithm) MarshalText() ([]byte, error)     { return algorithms.MarshalText(a) }
func (a *AmaxAlgorithm) UnmarshalText(text []byte) error { return algorithms.UnmarshalText(a, text) }
