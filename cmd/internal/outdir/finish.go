package outdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// replacedName is what the manifest of the run that is replaced is called on its way
// out.
const replacedName = "replaced.json"

// recover ends what a process that was killed had begun: files that were complete go
// to their places, others are removed unless they are kept.
func (r *Run) recover(keep bool) error {
	if !keep {
		if err := os.RemoveAll(filepath.Join(r.dir, partialName)); err != nil {
			return r.about(r.dir, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(r.dir, commitName)); err != nil {
		return nil
	}
	return finish(r.dir)
}

// finish puts the files of a commit into their places. It may be called again where an
// earlier call was cut off at any point. A manifest is there before and after, not
// between, and files of two runs are never there together: those of the run that is
// replaced go first, in the reverse of the order in which they came.
func finish(dir string) error {
	commit := filepath.Join(dir, commitName)
	next, err := readManifest(filepath.Join(commit, ManifestName))
	if errors.Is(err, fs.ErrNotExist) { // it has reached its place: only this directory is left
		return os.RemoveAll(commit)
	}
	if err != nil {
		return err
	}
	removeLive(dir, next.Files)
	replaced := filepath.Join(commit, replacedName)
	if err := move(filepath.Join(dir, ManifestName), replaced); err != nil {
		return err
	}
	if old, err := readManifest(replaced); err == nil {
		removeOld(dir, old.Files, next.Files)
	}
	for _, name := range next.Files {
		if err := move(filepath.Join(commit, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := move(filepath.Join(commit, ManifestName), filepath.Join(dir, ManifestName)); err != nil {
		return err
	}
	return os.RemoveAll(commit)
}

// move renames a file unless it is gone, because it was renamed before.
func move(from, to string) error {
	err := os.Rename(from, to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeOld removes the files of a run that is replaced, unless they are of the next one and
// have reached their places. One that cannot be removed does no harm: no manifest names it
// any more, or it is replaced as it is.
func removeOld(dir string, old, next []string) {
	for _, name := range slices.Backward(old) {
		if slices.Contains(next, name) {
			if _, err := os.Lstat(filepath.Join(dir, commitName, name)); err != nil {
				continue
			}
		}
		os.Remove(filepath.Join(dir, name))
	}
}
