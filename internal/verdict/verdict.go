// Package verdict is what the verdicts on kernels have in common: outcomes, lines of
// text, maps of errors, and pages.
package verdict

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// What a verdict says.
const (
	Pass      = "pass"
	Fail      = "fail"
	Undecided = "undecided"
)

// Failure is a title without what a status says already: that it failed.
func Failure(title string) string { return strings.TrimPrefix(title, "FAIL: ") }

// Width is that of a line of text.
const Width = 80

// Line is a line of a table.
type Line struct{ Name, Value string }

// Linef returns a line whose value has a format.
func Linef(name, format string, args ...any) Line { return Line{name, fmt.Sprintf(format, args...)} }

// WriteHanging writes lines, each a name, a colon and a value.
func WriteHanging(w io.Writer, lines []Line) {
	for _, line := range lines {
		textout.Hanging(w, line.Name+": ", line.Value, 2)
	}
}

// WriteReport writes a title, what explains it, and parts of lines, for people.
func WriteReport(w io.Writer, title string, causes []string, parts ...[]Line) error {
	b := textout.NewWriter(w)
	for _, text := range append([]string{title}, causes...) {
		textout.Hanging(b, "", text, 2)
	}
	for _, lines := range parts {
		fmt.Fprintln(b)
		WriteHanging(b, lines)
	}
	return b.Flush()
}

// fitted is a writer of tables that are as wide as its terminal or, elsewhere, [Width].
type fitted struct{ io.Writer }

// NewWriter returns a buffer before w, whose tables are no wider than the terminal that w is or,
// elsewhere, than [Width].
func NewWriter(w io.Writer) textout.Writer { return textout.NewWriter(fitted{w}) }

func (f fitted) Screen() (columns int, colors bool) {
	if s, ok := f.Writer.(textout.Screen); ok {
		columns, colors = s.Screen()
	}
	return cmp.Or(columns, Width), colors
}

// WriteTable writes a table, whose values are broken at words.
func WriteTable(w io.Writer, lines []Line) {
	name := 0
	for _, line := range lines {
		name = max(name, utf8.RuneCountInString(line.Name))
	}
	for _, line := range lines {
		lead := fmt.Sprintf("  %-*s  ", name, line.Name)
		textout.Hanging(w, lead, line.Value, utf8.RuneCountInString(lead))
	}
}
