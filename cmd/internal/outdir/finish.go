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
// between.
func finish(dir string) error {
	commit := filepath.Join(dir, commitName)
	next, err := readManifest(filepath.Join(commit, ManifestName))
	if errors.Is(err, fs.ErrNotExist) { // it has reached its place: only this directory is left
		return os.RemoveAll(commit)
	}
	if err != nil {
		return err
	}
	replaced := filepath.Join(commit, replacedName)
	if err := move(filepath.Join(dir, ManifestName), replaced); err != nil {
		return err
	}
	for _, name := range next.Files {
		if err := move(filepath.Join(commit, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if old, err := readManifest(replaced); err == nil {
		removeFiles(dir, old.Files, next.Files)
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

// removeFiles removes files of a run, but for those to keep. One that cannot be removed
// does no harm: no manifest names it any more.
func removeFiles(dir string, names, keep []string) {
	for _, name := range names {
		if !slices.Contains(keep, name) {
			os.Remove(filepath.Join(dir, name))
		}
	}
}
