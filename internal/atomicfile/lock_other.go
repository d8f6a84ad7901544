//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package atomicfile

import "os"

// lock does nothing: there are no locks by which a file of a process that has ended is known.
func lock(*os.File) bool { return true }

func removeDead(dir, pattern string) {}

// place closes a file and moves it to its place: one that is open cannot be moved everywhere.
func place(file *os.File, target string) error {
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), target)
}
