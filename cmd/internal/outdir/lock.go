package outdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// The entries of a directory in which a run is at work.
const (
	lockName    = ".octavo-lock"    // the file that is locked
	partialName = ".octavo-partial" // files that are being written
	commitName  = ".octavo-commit"  // files that are complete and on their way to their places
)

// errLocked is the error of a directory in which another process is at work.
var errLocked = errors.New("another octavo is writing into it")

// lock locks a directory, or returns errLocked.
func lock(dir string) (*flock.Flock, error) {
	path := filepath.Join(dir, lockName)
	for {
		l := flock.New(path, flock.SetPermissions(0o666))
		locked, err := l.TryLock()
		switch {
		case errors.Is(err, errors.ErrUnsupported): // this file system has no locks
			return l, nil
		case err != nil:
			return nil, err
		case !locked:
			return nil, errLocked
		case isAt(l, path):
			return l, nil
		}
		l.Close() // its last owner removed it just before we had it
	}
}

// Held reports whether a run is at work in a directory, which it also is as far as is known where the
// file system has no locks. A run that begins at the same moment may find the directory locked.
func Held(dir string) bool {
	l := flock.New(filepath.Join(dir, lockName), flock.SetFlag(os.O_RDONLY)) // which makes no file
	defer l.Close()
	free, err := l.TryRLock()
	return !free && !errors.Is(err, fs.ErrNotExist)
}

// isAt reports whether the locked file is the one at path.
func isAt(l *flock.Flock, path string) bool {
	ours, errOurs := l.Stat()
	there, errThere := os.Stat(path)
	return errOurs == nil && errThere == nil && os.SameFile(ours, there)
}

// unlock removes the file and then the lock, or the other way round where a file that
// is open cannot be removed.
func unlock(l *flock.Flock) {
	open := os.Remove(l.Path())
	l.Close()
	if open != nil {
		os.Remove(l.Path())
	}
}
