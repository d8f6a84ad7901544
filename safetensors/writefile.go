package safetensors

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// Tensor is a tensor in memory, for [WriteFile].
type Tensor struct {
	Info
	Data []byte // Info.Bytes() bytes, little-endian
}

// WriteFile writes tensors, in the order given, and metadata to the file at path,
// replacing it if it exists. A symbolic link stays, and what it leads to is
// replaced. The errors are those of [NewWriter], a Data that is too short or too
// long, a path to what is not a regular file, and those of the file system, which
// name path; if there is one, path is as it was.
func WriteFile(path string, tensors []Tensor, metadata map[string]string) error {
	infos := make([]Info, len(tensors))
	for i, t := range tensors {
		infos[i] = t.Info
	}
	return WriteFileFunc(path, infos, metadata, func(w *Writer) error {
		for _, t := range tensors {
			if err := w.Next(t.Name); err != nil {
				return err
			}
			if _, err := w.Write(t.Data); err != nil {
				return err
			}
		}
		return nil
	})
}

// WriteFileFunc is WriteFile for tensors that need not be in memory: write gets
// a Writer to which NewWriter's arguments are tensors and metadata, and writes
// the data to it. The file is built under another name in the same directory, put
// on disk, and renamed to path once write has returned nil and the Writer is
// complete. Otherwise it is removed; an error from write is returned as it is.
func WriteFileFunc(path string, tensors []Info, metadata map[string]string, write func(w *Writer) error) error {
	return replace(path, func(d *draft) error {
		w, err := NewWriter(d, tensors, metadata)
		if err != nil {
			return err
		}
		if err := write(w); err != nil {
			return err
		}
		return w.Close()
	})
}

// WriteFileAtFunc is WriteFileFunc for data that does not come in the order of the
// file: write gets a WriterAt.
func WriteFileAtFunc(path string, tensors []Info, metadata map[string]string, write func(w *WriterAt) error) error {
	return replace(path, func(d *draft) error {
		w, err := NewWriterAt(d, tensors, metadata)
		if err != nil {
			return err
		}
		if err := write(w); err != nil {
			return err
		}
		return w.Close()
	})
}

// replace makes the file at path what write writes, unless that fails.
func replace(path string, write func(d *draft) error) error {
	d, err := newDraft(path)
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	defer os.Remove(d.file.Name()) // in vain once it is renamed
	defer d.file.Close()           // first: an open file cannot be removed everywhere

	if err := write(d); err != nil {
		return err
	}
	if err := d.commit(); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}

// draft is a file that is to take the place of the one at path. Its errors name
// path, since nobody knows it by its own name.
type draft struct {
	file   *os.File
	path   string
	target string // what path leads to
}

func newDraft(path string) (*draft, error) {
	target, err := follow(path)
	if err != nil {
		return nil, about(path, err)
	}
	file, err := createBeside(target)
	if err != nil {
		return nil, about(path, err)
	}
	return &draft{file, path, target}, nil
}

func (d *draft) Write(p []byte) (int, error) {
	n, err := d.file.Write(p)
	return n, about(d.path, err)
}

func (d *draft) WriteAt(p []byte, off int64) (int, error) {
	n, err := d.file.WriteAt(p, off)
	return n, about(d.path, err)
}

// commit puts the file on disk and moves it to its place.
func (d *draft) commit() error {
	err := d.file.Sync()
	if err == nil {
		err = d.file.Close()
	}
	if err == nil {
		err = os.Rename(d.file.Name(), d.target)
	}
	return about(d.path, err)
}

// follow returns where the links of path lead to, and refuses what a file is not
// to replace.
func follow(path string) (string, error) {
	stat, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return "", &fs.PathError{Op: "replace", Path: path, Err: errors.New("the link leads to no file")}
		}
		return path, nil
	}
	if err != nil {
		return "", err
	}
	if !stat.Mode().IsRegular() {
		return "", &fs.PathError{Op: "replace", Path: path, Err: errors.New("it is not a regular file")}
	}
	return filepath.EvalSymlinks(path)
}

// createBeside creates a file in path's directory under a name not in use, with
// the permissions that creating path itself would give (os.CreateTemp's are
// narrower).
func createBeside(path string) (*os.File, error) {
	name := ".safetensors-" + strconv.FormatUint(rand.Uint64(), 36)
	return os.OpenFile(filepath.Join(filepath.Dir(path), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
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
