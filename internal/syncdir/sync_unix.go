//go:build unix

package syncdir

import (
	"errors"
	"os"
	"syscall"
)

// Sync puts on disk what a directory has entries of: files that were renamed into it
// or removed from it. Until then a machine that fails may come back without them.
func Sync(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err = f.Sync(); errors.Is(err, syscall.EINVAL) {
		err = nil // a file system that has nothing to put on disk
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
