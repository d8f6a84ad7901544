package textout

import (
	"fmt"
	"strings"
)

// Count writes how many there are of what, which takes an s in the plural: "1 step", "3 steps",
// "2 projections of MTP".
func Count[T int | int64](n T, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if noun, of, found := strings.Cut(what, " of "); found {
		return fmt.Sprintf("%d %ss of %s", n, noun, of)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
