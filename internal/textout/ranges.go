package textout

import (
	"fmt"
	"strings"
)

// Ranges writes ascending numbers as "0-3, 7", and what is more as "and N others".
func Ranges(all []int) string {
	const most = 4
	var parts []string
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to] == all[to-1]+1 {
			to++
		}
		if len(parts) == most {
			return fmt.Sprintf("%s and %d others", strings.Join(parts, ", "), len(all)-from)
		}
		part := fmt.Sprint(all[from])
		if to > from+1 {
			part = fmt.Sprintf("%d-%d", all[from], all[to-1])
		}
		parts = append(parts, part)
		from = to
	}
	return strings.Join(parts, ", ")
}
