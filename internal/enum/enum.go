// Package enum gives enumerations of small integers their text form, the same in
// every package: a name for each value, from 0 on, and an error that lists the names.
package enum

import (
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Enum is the names of an enumeration T, in the order of its values.
type Enum[T ~uint8] struct {
	Type  string // for values without a name, such as "Rounding" in "Rounding(9)"
	What  string // in errors, such as "rounding" in "unknown rounding"
	Names []string

	// Err, unless nil, is what errors are, for errors.Is. Prefix is what their text
	// begins with, such as "fp8"; without it that is Err's text.
	Err    error
	Prefix string
}

// Valid reports whether v has a name.
func (e *Enum[T]) Valid(v T) bool { return int(v) < len(e.Names) }

// String returns the name of v, or such as "Rounding(9)".
func (e *Enum[T]) String(v T) string {
	if e.Valid(v) {
		return e.Names[v]
	}
	return fmt.Sprintf("%s(%d)", e.Type, uint8(v))
}

// Check returns an error unless v has a name.
func (e *Enum[T]) Check(v T) error {
	if e.Valid(v) {
		return nil
	}
	return e.unknown(fmt.Sprint(uint8(v)))
}

// Parse returns the value of the given name, in any case.
func (e *Enum[T]) Parse(name string) (T, error) {
	for i, n := range e.Names {
		if strings.EqualFold(n, name) {
			return T(i), nil
		}
	}
	return 0, e.unknown(fmt.Sprintf("%q", name))
}

// MarshalText returns the name of v, and an error if it has none.
func (e *Enum[T]) MarshalText(v T) ([]byte, error) {
	if err := e.Check(v); err != nil {
		return nil, err
	}
	return []byte(e.Names[v]), nil
}

// UnmarshalText sets v to the value of the given name, or leaves it as it is.
func (e *Enum[T]) UnmarshalText(v *T, text []byte) error {
	parsed, err := e.Parse(string(text))
	if err == nil {
		*v = parsed
	}
	return err
}

func (e *Enum[T]) unknown(got string) error {
	err := fmt.Errorf("unknown %s %s: want one of %s", e.What, got, strings.Join(e.Names, ", "))
	switch {
	case e.Prefix != "" && e.Err != nil:
		return sentinel.Errorf(e.Err, "%s: %w", e.Prefix, err)
	case e.Prefix != "":
		return fmt.Errorf("%s: %w", e.Prefix, err)
	case e.Err != nil:
		return fmt.Errorf("%w: %w", e.Err, err)
	}
	return err
}
