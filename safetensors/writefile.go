package safetensors

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/internal/atomicfile"
)

// Tensor is a tensor in memory, for [WriteFile] and [Encode].
type Tensor struct {
	Info
	Data []byte // Info.Bytes() bytes, little-endian
}

// New returns a tensor of elements, whose bits are those of the type d: float32 for F32, bytes
// for codes, and so on. It copies them. The errors of a shape or a type that does not go with
// them are those of [Encode].
func New[T Element](name string, d DType, shape []int, values []T) Tensor {
	data := slices.Clone(bytesOf(values))
	if bigEndian {
		reverseEach(data, d.part())
	}
	return Tensor{Info{Name: name, DType: d, Shape: shape}, data}
}

// WriteFile writes tensors, in the order given, and metadata to the file at path,
// replacing it if it exists. A symbolic link stays, and what it leads to is
// replaced; the new file has the permissions of the old one. The errors are those of
// [Encode], a path to what is not a regular file, and those of the file system, which
// name path; if there is one, path is as it was.
func WriteFile(path string, tensors []Tensor, metadata map[string]string) error {
	return WriteFileFunc(path, infosOf(tensors), metadata, func(w *Writer) error {
		return w.writeAll(tensors)
	})
}

// Encode returns the bytes of a file of tensors, in the order given, and metadata. The
// errors are those of [NewWriter] and a Data that is too short or too long. Neither
// argument is kept. Safe for concurrent use.
func Encode(tensors []Tensor, metadata map[string]string) ([]byte, error) {
	var file bytes.Buffer
	w, err := NewWriter(&file, infosOf(tensors), metadata)
	if err != nil {
		return nil, err
	}
	if err := w.writeAll(tensors); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return file.Bytes(), nil
}

func infosOf(tensors []Tensor) []Info {
	infos := make([]Info, len(tensors))
	for i, t := range tensors {
		infos[i] = t.Info
	}
	return infos
}

func (w *Writer) writeAll(tensors []Tensor) error {
	for _, t := range tensors {
		if err := w.Next(t.Name); err != nil {
			return err
		}
		if _, err := w.Write(t.Data); err != nil {
			return err
		}
	}
	return nil
}

// WriteFileFunc is WriteFile for tensors that need not be in memory: write gets
// a Writer to which NewWriter's arguments are tensors and metadata, and writes
// the data to it. The file is built under another name in the same directory, put
// on disk, and renamed to path once write has returned nil and the Writer is
// complete. Otherwise it is removed; an error from write is returned as it is.
func WriteFileFunc(path string, tensors []Info, metadata map[string]string, write func(w *Writer) error) error {
	if write == nil {
		return fmt.Errorf("safetensors: %w", errNoFunc)
	}
	return replace(path, func(f *atomicfile.File) error {
		w, err := NewWriter(f, tensors, metadata)
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
	if write == nil {
		return fmt.Errorf("safetensors: %w", errNoFunc)
	}
	return replace(path, func(f *atomicfile.File) error {
		w, err := NewWriterAt(f, tensors, metadata)
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
func replace(path string, write func(f *atomicfile.File) error) error {
	f, err := atomicfile.Create(path)
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Commit(); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}
