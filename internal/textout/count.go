package textout

import "fmt"

// Count writes how many there are of what, which takes an s in the plural: "1 step", "3 steps".
func Count[T int | int64](n T, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
