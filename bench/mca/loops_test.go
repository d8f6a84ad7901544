package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLoops looks for the functions and labels of all loops in the sources.
func TestLoops(t *testing.T) {
	for _, l := range loops {
		body := sourceOf(t, l)
		labels := append([]string{l.label}, l.taken...)
		for label := range l.times {
			labels = append(labels, label)
		}
		for _, label := range labels {
			if !regexp.MustCompile(`(?m)^\s*` + label + `:`).MatchString(body) {
				t.Errorf("%s of %s, %s: no label %s", l.function, l.pkg, l.arch, label)
			}
		}
	}
}

// sourceOf returns the source of a loop's function, and that of the macros beside it.
func sourceOf(t *testing.T, l loop) (body string) {
	t.Helper()
	found := false
	for _, pattern := range []string{"*_" + l.arch + ".s", "*_" + l.arch + ".h"} {
		files, err := filepath.Glob(filepath.Join("../..", filepath.FromSlash(l.pkg), pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source := string(text)
			if strings.HasSuffix(file, ".h") {
				body += source
			} else if _, rest, ok := strings.Cut(source, "TEXT ·"+l.function+"(SB)"); ok {
				found = true
				own, _, _ := strings.Cut(rest, "\nTEXT ")
				body += own
			}
		}
	}
	if !found {
		t.Errorf("%s has no function %s for %s", l.pkg, l.function, l.arch)
	}
	return body
}

func TestChoose(t *testing.T) {
	list, err := choose("arm64", "NEON$", loop{}, "", "")
	if err != nil || len(list) < 10 {
		t.Errorf("%d loops: %v", len(list), err)
	}
	for _, c := range [][2]string{{"arm64", "typo"}, {"riscv64", ""}, {"amd64", "("}} {
		if list, err := choose(c[0], c[1], loop{}, "", ""); err == nil {
			t.Errorf("%q: %d loops and no error", c, len(list))
		}
	}
}
