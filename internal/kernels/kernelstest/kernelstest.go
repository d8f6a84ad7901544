// Package kernelstest runs tests for the implementations that package kernels lists,
// and notices those that no test was run for.
//
// A package with kernels has
//
//	func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "convert.")) }
//
// so that its tests, when all are run, fail unless every implementation whose level
// the machine has was tested by [Compare] or reported to [Tested].
//
// If the environment variable OCTAVO_KERNEL_LOG names a file, a line is appended to it
// for every implementation that passed a test: package, operation and level. CI
// gives the file to the command levelcheck.
package kernelstest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

// LogVariable is the environment variable with the name of the file that says which
// implementations were tested.
const LogVariable = "OCTAVO_KERNEL_LOG"

// AtLevels runs a test at each level that an operation has an implementation for, as
// a subtest named after the level, with that level in use; and so for each feature that
// one of its implementations needs, with that and none of the others. Names are those of
// [kernels.Entries]. A level or a feature that this machine lacks is skipped.
func AtLevels(t *testing.T, name string, test func(t *testing.T, l cpu.Level)) {
	t.Helper()
	var features []cpu.Feature
	places := map[cpu.Level][]cpu.Feature{}
	for _, e := range kernels.Entries(name) {
		features = append(features, e.Feature)
		if !slices.Contains(places[e.Level], e.Feature) {
			places[e.Level] = append(places[e.Level], e.Feature)
		}
	}
	for _, l := range kernels.Levels(name) {
		for _, f := range places[l] {
			at(t, kernels.Entry{Level: l, Feature: f}, func(t *testing.T) {
				others := slices.DeleteFunc(slices.Clone(features), func(other cpu.Feature) bool { return other == f })
				defer cpu.Without(others...)()
				test(t, l)
			})
		}
	}
}

// Compare is [AtLevels] for a test that compares what implementations give with what
// they must give: those that pass count as [Tested].
func Compare(t *testing.T, name string, test func(t *testing.T, l cpu.Level)) {
	t.Helper()
	AtLevels(t, name, func(t *testing.T, l cpu.Level) {
		test(t, l)
		if !t.Failed() {
			Tested(t, name, l)
		}
	})
}

// At runs a subtest named after a level, with that level in use. It is skipped where
// this machine lacks it.
func At(t *testing.T, l cpu.Level, test func(t *testing.T)) {
	t.Helper()
	at(t, kernels.Entry{Level: l}, test)
}

func at(t *testing.T, e kernels.Entry, test func(t *testing.T)) {
	t.Helper()
	l := e.Level
	t.Run(e.Place(), func(t *testing.T) {
		if !slices.Contains(cpu.Levels(), l) {
			t.Skipf("level %v not tested: this build and machine have %v", l, cpu.Levels())
		}
		if !cpu.Has(e.Feature) {
			t.Skipf("level %v not tested: this build and machine have no %v", e.Place(), e.Feature)
		}
		restore, err := cpu.Force(l)
		if err != nil {
			t.Fatal(err)
		}
		defer restore()
		test(t)
	})
}

var (
	mutex  sync.Mutex
	tested = map[kernels.Entry]bool{}
)

// Tested says that the implementations of operations for a level, with the features that
// there are, were compared with what they must give.
func Tested(t testing.TB, name string, l cpu.Level) {
	t.Helper()
	mutex.Lock()
	defer mutex.Unlock()
	for _, e := range serving(kernels.Entries(name), l) {
		if tested[e] {
			continue
		}
		tested[e] = true
		if err := log(e); err != nil {
			t.Errorf("%s: %v", LogVariable, err)
		}
	}
}

// serving returns the entries of a level that serve: of each operation the one for the
// last feature that there is.
func serving(entries []kernels.Entry, l cpu.Level) (list []kernels.Entry) {
	at := map[string]int{}
	for _, e := range entries {
		if e.Level != l || !cpu.Has(e.Feature) {
			continue
		}
		if i, ok := at[e.Operation]; ok {
			list[i] = e
			continue
		}
		at[e.Operation] = len(list)
		list = append(list, e)
	}
	return list
}

// log appends a line to the log. The working directory of a test is its package's.
func log(e kernels.Entry) error {
	path := os.Getenv(LogVariable)
	if path == "" {
		return nil
	}
	directory, err := os.Getwd()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s %v\n", filepath.Base(directory), e.Operation, e.Place())
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Main runs the tests of a package and returns the exit status. It is 1 where all
// tests were run and passed, but an implementation of the named operations was not
// tested though this machine has its level.
func Main(m *testing.M, name string) int {
	if status := m.Run(); status != 0 || !all() {
		return status
	}
	missing := untested(kernels.Entries(name), cpu.Levels())
	if len(missing) == 0 {
		return 0
	}
	for _, e := range missing {
		fmt.Fprintf(os.Stderr, "FAIL: no test was run for %v\n", e)
	}
	return 1
}

// untested returns the entries for the given levels, and features of this machine, that
// were not tested.
func untested(entries []kernels.Entry, levels []cpu.Level) []kernels.Entry {
	mutex.Lock()
	defer mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(entries), func(e kernels.Entry) bool {
		return tested[e] || !slices.Contains(levels, e.Level) || !cpu.Has(e.Feature)
	})
}

// all reports whether tests are run and none is left out by a flag.
func all() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return strings.HasSuffix(strings.TrimSuffix(os.Args[0], ".exe"), ".test")
}
