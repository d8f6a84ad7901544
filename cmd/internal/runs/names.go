package runs

import (
	"path/filepath"
	"slices"
	"strings"
)

// names returns for each path the shortest part by which it differs from the others:
// without the directories that all begin with, and without those that all end with. A
// path that comes alone is known by its last directory.
func names(paths []string) []string {
	parts := make([][]string, len(paths))
	for i, path := range paths {
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute
		}
		parts[i] = strings.Split(filepath.ToSlash(path), "/")
	}
	begin := common(parts)
	rest := cutBegin(parts, begin)
	for _, p := range rest {
		slices.Reverse(p)
	}
	rest = cutBegin(rest, common(rest))
	list := make([]string, len(paths))
	for i, p := range rest {
		slices.Reverse(p)
		list[i] = strings.Join(p, "/")
		if list[i] == "" { // the root
			list[i] = paths[i]
		}
	}
	return list
}

// common returns how many parts all lists begin with, but never all parts of one.
func common(lists [][]string) int {
	if len(lists) == 0 {
		return 0
	}
	n := 0
	for ; ; n++ {
		for _, l := range lists {
			if n >= len(l)-1 || l[n] != lists[0][n] {
				return n
			}
		}
	}
}

// cutBegin returns copies of lists without their first n parts.
func cutBegin(lists [][]string, n int) [][]string {
	rest := make([][]string, len(lists))
	for i, l := range lists {
		rest[i] = slices.Clone(l[n:])
	}
	return rest
}
