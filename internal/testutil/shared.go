// Package testutil is what the tests of several packages share.
package testutil

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Full reports whether tests shall try every input where they otherwise take a
// sample: the environment variable OCTAVO_EXHAUSTIVE is 1.
func Full() bool { return os.Getenv("OCTAVO_EXHAUSTIVE") == "1" }

// Shared returns the path of a file of the shared directory, which lies beside
// the repository and is no part of it. Where that directory is absent the test
// is skipped, or fails if the environment variable CI is "true".
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	root, ok := repositoryRoot()
	if !ok {
		t.Fatal("no repository root above the working directory")
	}
	directory := filepath.Join(root, "..", "shared")
	file := filepath.Join(elem...)
	if _, err := os.Stat(directory); err != nil {
		Lacking(t, "../shared is absent: %s not tested against %s", t.Name(), file)
	}
	path := filepath.Join(directory, file)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("../shared lacks a file: %v", err)
	}
	return path
}

// repositoryRoot walks up from the working directory. The nested modules have a go.mod of
// their own, and one a go.work, so only the root's go.mod counts.
func repositoryRoot() (directory string, ok bool) {
	directory, err := os.Getwd()
	if err != nil {
		return "", false
	}
	for !isRoot(directory) {
		parent := filepath.Dir(directory)
		if parent == directory {
			return "", false
		}
		directory = parent
	}
	return directory, true
}

func isRoot(directory string) bool {
	if _, err := os.Stat(filepath.Join(directory, ".git")); err == nil {
		return true
	}
	mod, err := os.ReadFile(filepath.Join(directory, "go.mod"))
	first, _, _ := bytes.Cut(mod, []byte("\n"))
	return err == nil && string(bytes.TrimSpace(first)) == "module github.com/octavo-fp8/octavo"
}
