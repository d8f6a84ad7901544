package display

import (
	"fmt"
	"slices"
	"strings"
)

// Mode is how progress is shown.
type Mode int

const (
	Auto  Mode = iota // a bar on a terminal, lines elsewhere
	Bar               // a bar
	Plain             // a line every ten seconds
	None              // nothing
)

// Modes returns the names of all modes, in their order.
func Modes() []string { return []string{"auto", "bar", "plain", "none"} }

// String returns the name of a mode.
func (m Mode) String() string { return Modes()[m] }

// ParseMode returns the mode of a name.
func ParseMode(name string) (Mode, error) {
	i := slices.Index(Modes(), name)
	if i < 0 {
		return Auto, fmt.Errorf("want %s", strings.Join(Modes(), " or "))
	}
	return Mode(i), nil
}
