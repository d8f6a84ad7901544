// Package textout formats what commands print for people.
package textout

import (
	"strconv"
	"strings"
	"unicode"
)

// Name returns text from a file as it is, or quoted if it could upset a
// terminal or a line.
func Name(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
