// Package atomicfile replaces files as a whole: whoever opens the path finds the old
// file or the complete new one, and an error leaves the old one as it was.
package atomicfile

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// File is a file that is to take the place of the one at a path. It is written under
// another name in the same directory. Errors name the path that was asked for, since
// nobody knows the other name.
type File struct {
	file      *os.File
	path      string
	target    string      // what path leads to
	replaced  fs.FileInfo // nil if there is no such file yet
	committed bool
}

// Create begins a file at path. A symbolic link stays, and what it leads to is
// replaced. The new file has the permissions of the one that it replaces and, where
// the system allows that, its owner and group; otherwise those that creating it gives.
// It is an error if path leads to anything but a regular file.
//
// What a process that was killed left of an earlier File for the same path is removed, where
// the system has locks: those of a living one are locked.
//
// Whoever creates a File calls Close in any case, and Commit before that if it is
// complete.
func Create(path string) (*File, error) {
	if path == "" {
		return nil, refusal(path, "the name is empty")
	}
	target, replaced, err := follow(path)
	if err != nil {
		return nil, about(path, err)
	}
	mode := fs.FileMode(0o666)
	if replaced != nil {
		mode = 0o600 // nobody else is to see it before it has its permissions
	}
	dir, prefix := directory(target), prefixOf(filepath.Base(target))
	removeDead(dir, prefix+"*")
	file, err := openNew(dir+string(filepath.Separator)+prefix, mode)
	if err != nil {
		return nil, about(path, err)
	}
	return &File{file: file, path: path, target: target, replaced: replaced}, nil
}

// prefixOf returns what the other names of a file begin with: a sum, since its own name may be
// as long as names can be.
func prefixOf(base string) string {
	h := fnv.New64a()
	h.Write([]byte(base))
	return ".octavo-" + strconv.FormatUint(h.Sum64(), 36) + "-"
}

// openNew makes a file that is locked, under a name of its own.
func openNew(prefix string, mode fs.FileMode) (*os.File, error) {
	for {
		file, err := os.OpenFile(prefix+strconv.FormatUint(rand.Uint64(), 36), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil || lock(file) {
			return file, err
		}
		file.Close()
	}
}

// Write implements [io.Writer].
func (f *File) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	return n, about(f.path, err)
}

// WriteAt implements [io.WriterAt].
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.file.WriteAt(p, off)
	return n, about(f.path, err)
}

// Commit puts the file on disk and moves it to its place.
func (f *File) Commit() error {
	err := f.file.Sync()
	if err == nil && f.replaced != nil {
		err = takePermissions(f.file, f.replaced)
	}
	if err == nil {
		err = place(f.file, f.target)
	}
	f.committed = err == nil
	return about(f.path, err)
}

// Close removes the file unless it was committed.
func (f *File) Close() {
	if f.committed {
		return
	}
	f.file.Close() // first: an open file cannot be removed everywhere
	os.Remove(f.file.Name())
}

// Write makes what write writes the content of the file at path, as [Create] does. An
// error of write is returned as it is. A pipe or a device has no content to replace:
// it is written to while write goes on.
func Write(path string, write func(w io.Writer) error) error {
	if stat, err := os.Stat(path); err == nil && stat.Mode()&(fs.ModeNamedPipe|fs.ModeDevice) != 0 {
		return writeTo(path, write)
	}
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}

// writeTo writes to a file that is there.
func writeTo(path string, write func(w io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = write(file)
	if e := file.Close(); err == nil {
		err = e
	}
	return err
}

// takePermissions gives a file those of another, and its owner and group where that
// is allowed. Another group gets no more than everybody had.
func takePermissions(file *os.File, other fs.FileInfo) error {
	mode := other.Mode().Perm()
	if !takeOwner(file, other) {
		mode = forAnotherGroup(mode)
	}
	return file.Chmod(mode)
}

// forAnotherGroup returns the permissions of a file whose group is not the one that
// they were given to.
func forAnotherGroup(mode fs.FileMode) fs.FileMode {
	everybody := mode & 0o007
	return mode&^0o070 | mode&(everybody<<3)
}

// mostLinks is how many links a path may lead through, as in Linux.
const mostLinks = 40

// follow returns where the links of path lead to, and the file there if there is one.
// It refuses what a file is not to replace.
func follow(path string) (target string, replaced fs.FileInfo, err error) {
	target = path
	for range mostLinks {
		stat, err := os.Lstat(target)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return target, nil, nil
		case err != nil:
			return "", nil, err
		case stat.Mode().IsRegular():
			return target, stat, nil
		case stat.Mode()&fs.ModeSymlink == 0:
			return "", nil, refusal(path, "it is not a regular file")
		}
		if target, err = readLink(target); err != nil {
			return "", nil, err
		}
	}
	return "", nil, refusal(path, fmt.Sprintf("it leads through more than %d links", mostLinks))
}

// readLink returns where a symbolic link leads to. What is relative in it begins in
// the directory that the link is in, and not in one that is itself a link to that.
func readLink(path string) (string, error) {
	to, err := os.Readlink(path)
	if err != nil || filepath.IsAbs(to) {
		return to, err
	}
	dir, err := filepath.EvalSymlinks(directory(path))
	return dir + string(filepath.Separator) + to, err
}

// directory returns the directory that a path is in. Unlike [filepath.Dir] it does not
// shorten link/.. to nothing.
func directory(path string) string {
	dir, _ := filepath.Split(path)
	if dir == "" {
		return "."
	}
	return dir
}

func refusal(path, why string) error {
	return &fs.PathError{Op: "replace", Path: path, Err: errors.New(why)}
}

// about makes an error of the file system one about path.
func about(path string, err error) error {
	var file *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &file):
		return &fs.PathError{Op: file.Op, Path: path, Err: file.Err}
	case errors.As(err, &link):
		return &fs.PathError{Op: link.Op, Path: path, Err: link.Err}
	}
	return err
}
