package outdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Next begins a run in the first directory of base, base-2, base-3 and so on that is
// absent or empty. Of several processes that call it at once each has another.
func Next(base string) (*Run, error) {
	for n := 1; ; n++ {
		dir := numbered(base, n)
		if !isFree(dir) {
			continue
		}
		if r, err := createFree(dir); r != nil || err != nil {
			return r, err
		}
	}
}

// createFree begins a run in a directory that was free a moment ago. It returns nil if
// somebody else was faster: one who is at work there, has ended, or was killed and has
// left more than isFree overlooks.
func createFree(dir string) (*Run, error) {
	r, err := Create(dir, Options{})
	switch {
	case errors.Is(err, errLocked), errors.Is(err, ErrHasRun):
		return nil, nil
	case err == nil && !isFree(dir):
		r.Abort()
		return nil, nil
	}
	return r, err
}

// All returns the directories of base, base-2, base-3 and so on that are there.
func All(base string) (dirs []string, err error) {
	parent := filepath.Dir(base)
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil, err
	}
	names := numberedName(filepath.Base(base))
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		if stat, err := os.Stat(dir); err == nil && stat.IsDir() && names.MatchString(e.Name()) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// numberedName matches what numbered returns for any n.
func numberedName(base string) *regexp.Regexp {
	return regexp.MustCompile("^" + regexp.QuoteMeta(base) + "(-([2-9]|[1-9][0-9]+))?$")
}

// numbered returns the name of the n-th directory.
func numbered(base string, n int) string {
	if n == 1 {
		return base
	}
	return fmt.Sprintf("%s-%d", base, n)
}

// isFree reports whether there is nothing at a path, or a directory with nothing in it
// but what a run that was killed left of files that were not complete.
func isFree(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		_, err = os.Lstat(dir)
		return err != nil // Create says what is wrong if that is more than that it is absent
	}
	for _, e := range entries {
		if name := e.Name(); name != lockName && name != partialName {
			return false
		}
	}
	return true
}
