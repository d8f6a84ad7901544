package swiglu

import "github.com/octavo-fp8/octavo/internal/enum"

// Axis is what shares a smoothing scale.
type Axis uint8

const (
	PerChannel Axis = iota // a column of u, [tokens, channels]
	PerToken               // a row
)

var axes = enum.Enum[Axis]{Type: "Axis", What: "axis of smoothing", Names: []string{"per-channel", "per-token"}, Err: ErrSmoothing, Prefix: "swiglu"}

// String returns the text of a, such as "per-token".
func (a Axis) String() string                   { return axes.String(a) }
func (a Axis) MarshalText() ([]byte, error)     { return axes.MarshalText(a) }
func (a *Axis) UnmarshalText(text []byte) error { return axes.UnmarshalText(a, text) }
