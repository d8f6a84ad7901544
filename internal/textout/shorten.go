package textout

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Shorten fits a name into a width: first the parts before its last dots become their
// first letters, from the left, but for numbers; then the middle goes.
func Shorten(name string, width int) string {
	parts := strings.Split(name, ".")
	for i := 0; i < len(parts)-2 && utf8.RuneCountInString(name) > width; i++ {
		if _, err := strconv.Atoi(parts[i]); err != nil && parts[i] != "" {
			parts[i] = string([]rune(parts[i])[:1])
		}
		name = strings.Join(parts, ".")
	}
	all := []rune(name)
	if len(all) <= width {
		return name
	}
	tail := (width - 2) * 2 / 3
	return string(all[:width-2-tail]) + ".." + string(all[len(all)-tail:])
}
