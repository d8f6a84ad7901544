package safetensors

import (
	"fmt"
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
// replacing it if it exists. The errors are those of [NewWriter], a Data that is
// too short or too long, and those of the file system; if there is one, path is
// as it was.
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
	file, err := createBeside(path)
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	defer os.Remove(file.Name()) // in vain once it is renamed
	defer file.Close()           // first: an open file cannot be removed everywhere

	w, err := NewWriter(file, tensors, metadata)
	if err != nil {
		return err
	}
	if err := write(w); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := commit(file, path); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}

// createBeside creates a file in path's directory under a name not in use, with
// the permissions that creating path itself would give (os.CreateTemp's are
// narrower).
func createBeside(path string) (*os.File, error) {
	name := ".safetensors-" + strconv.FormatUint(rand.Uint64(), 36)
	return os.OpenFile(filepath.Join(filepath.Dir(path), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

// commit puts file on disk and moves it to path.
func commit(file *os.File, path string) error {
	if err := file.Sync(); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
