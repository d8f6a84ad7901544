package oracle

import (
	"fmt"

	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

var units = enum.Enum[Unit]{Type: "Unit", What: "unit of a model",
	Names: []string{"fused", "emulated", "scaled", "grouped", "matrix-core"}}

// String returns a name such as "matrix-core".
func (u Unit) String() string { return units.String(u) }

// MarshalText returns the name, and an error for an unknown unit.
func (u Unit) MarshalText() ([]byte, error) { return units.MarshalText(u) }

// UnmarshalText takes a name in any case.
func (u *Unit) UnmarshalText(text []byte) error { return units.UnmarshalText(u, text) }

var scaleOrders = enum.Enum[ScaleOrder]{Type: "ScaleOrder", What: "order of scales",
	Names: []string{"any", "product-then-fma", "a-then-b", "b-then-a"}}

// ParseScaleOrder returns the order of the given name, in any case.
func ParseScaleOrder(name string) (ScaleOrder, error) {
	s, err := scaleOrders.Parse(name)
	if err != nil {
		return 0, sentinel.Errorf(ErrModel, "oracle: %w", err)
	}
	return s, nil
}

// String returns a name such as "a-then-b".
func (s ScaleOrder) String() string { return scaleOrders.String(s) }

// MarshalText returns the name, and an error for an unknown order.
func (s ScaleOrder) MarshalText() ([]byte, error) { return scaleOrders.MarshalText(s) }

// UnmarshalText takes a name in any case.
func (s *ScaleOrder) UnmarshalText(text []byte) error { return scaleOrders.UnmarshalText(s, text) }

var patterns = enum.Enum[Pattern]{Type: "Pattern", What: "pattern",
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
func ParsePattern(name string) (Pattern, error) {
	p, err := patterns.Parse(name)
	if err != nil {
		return 0, fmt.Errorf("oracle: %w", err)
	}
	return p, nil
}

// String returns the pattern's name, such as "outlier".
func (p Pattern) String() string { return patterns.String(p) }

// MarshalText returns the name, and an error for an unknown pattern.
func (p Pattern) MarshalText() ([]byte, error) { return patterns.MarshalText(p) }

// UnmarshalText takes a name in any case.
func (p *Pattern) UnmarshalText(text []byte) error { return patterns.UnmarshalText(p, text) }
