//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package atomicfile

import (
	"os"
	"path/filepath"
	"syscall"
)

// lock locks a file that was just made, until it is closed or the process ends, and reports
// whether it is still there: whoever looked at it before that took it for a dead one. A file
// system without locks has no dead ones either.
func lock(file *os.File) bool {
	if err := flock(file); err != nil {
		return err != syscall.EWOULDBLOCK
	}
	ours, err := file.Stat()
	there, errThere := os.Lstat(file.Name())
	return err == nil && errThere == nil && os.SameFile(ours, there)
}

// removeDead removes the files of a directory that match and whose process has ended.
func removeDead(dir, pattern string) {
	entries, _ := os.ReadDir(dir) // what cannot be listed stays
	for _, e := range entries {
		if ok, _ := filepath.Match(pattern, e.Name()); !ok || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		if flock(file) == nil {
			os.Remove(path)
		}
		file.Close()
	}
}

func flock(file *os.File) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB) })
	if err != nil {
		return err
	}
	return failed
}

// place moves a file to its place and closes it, in this order: it stays locked meanwhile.
func place(file *os.File, target string) error {
	if err := os.Rename(file.Name(), target); err != nil {
		return err
	}
	return file.Close()
}
