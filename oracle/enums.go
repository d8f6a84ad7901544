package oracle

import (
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

var units = enum.Enum[Unit]{Type: "Unit", What: "unit of a model",
	Names: []string{"fused", "emulated", "scaled", "grouped", "matrix-core", "single-rounding"}}

// String returns a name such as "matrix-core".
func (u Unit) String() string { return units.String(u) }

// MarshalText returns the name, and an [ErrModel] for an unknown unit.
func (u Unit) MarshalText() ([]byte, error) {
	text, err := units.MarshalText(u)
	return text, modelError(err)
}

// UnmarshalText takes a name in any case. Another is an [ErrModel].
func (u *Unit) UnmarshalText(text []byte) error { return modelError(units.UnmarshalText(u, text)) }

var scaleOrders = enum.Enum[ScaleOrder]{Type: "ScaleOrder", What: "order of scales",
	Names: []string{"any", "product-then-fma", "a-then-b", "b-then-a"}}

// ParseScaleOrder returns the order of the given name, in any case. Another is an
// [ErrModel].
func ParseScaleOrder(name string) (ScaleOrder, error) {
	s, err := scaleOrders.Parse(name)
	return s, modelError(err)
}

// String returns a name such as "a-then-b".
func (s ScaleOrder) String() string { return scaleOrders.String(s) }

// MarshalText returns the name, and an [ErrModel] for an unknown order.
func (s ScaleOrder) MarshalText() ([]byte, error) {
	text, err := scaleOrders.MarshalText(s)
	return text, modelError(err)
}

// UnmarshalText takes a name in any case. Another is an [ErrModel].
func (s *ScaleOrder) UnmarshalText(text []byte) error {
	return modelError(scaleOrders.UnmarshalText(s, text))
}

// modelError makes err, unless it is nil, an ErrModel that begins with the package.
func modelError(err error) error {
	if err == nil {
		return nil
	}
	return sentinel.Errorf(ErrModel, "oracle: %w", err)
}

var patterns = enum.Enum[Pattern]{Type: "Pattern", What: "pattern", Prefix: "oracle",
	Names: []string{"bell", "ties", "outlier", "tiny", "subnormals", "zeros", "powers", "nans", "infs"}}

// Patterns returns all patterns.
func Patterns() []Pattern {
	all := make([]Pattern, len(patterns.Names))
	for i := range all {
		all[i] = Pattern(i)
	}
	return all
}

// ParsePattern returns the pattern of the given name, in any case.
func ParsePattern(name string) (Pattern, error) { return patterns.Parse(name) }

// String returns the pattern's name, such as "outlier".
func (p Pattern) String() string                   { return patterns.String(p) }
func (p Pattern) MarshalText() ([]byte, error)     { return patterns.MarshalText(p) }
func (p *Pattern) UnmarshalText(text []byte) error { return patterns.UnmarshalText(p, text) }
