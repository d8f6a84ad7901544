package textout

import (
	"fmt"
	"strconv"
)

// Share formats a count and, unless it is 0, how much that is of a whole.
func Share(n, whole int64) string {
	text := strconv.FormatInt(n, 10)
	if n > 0 {
		text += fmt.Sprintf(" (%.3g%%)", 100*float64(n)/float64(whole))
	}
	return text
}
