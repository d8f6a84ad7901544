package textout

import (
	"strings"
	"unicode/utf8"
)

// Fold breaks a line at spaces where it is wider than so many columns. What goes on begins below
// its text, two columns further in. A word that is wider stays whole, and so does a line with
// several spaces between words, which is of a table, and one with red text.
func Fold(line string, columns int) string {
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	if utf8.RuneCountInString(line) <= columns || indent+2 >= columns/2 || strings.Contains(text, red) || strings.Contains(text, "  ") {
		return line
	}
	folded := Wrap(text, columns, strings.Repeat(" ", indent+2))
	return folded[2:]
}
