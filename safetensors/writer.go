package safetensors

import (
	"fmt"
	"io"
)

// Writer writes a safetensors file from first byte to last, holding none of the
// data. For each tensor declared to [NewWriter], in that order, call Next with its
// name and then Write its data; at the end call Close. A Writer must not be used
// by several goroutines at once.
type Writer struct {
	w       io.Writer
	tensors []Info
	begun   int   // tensors begun by Next; the last of them is being written
	left    int64 // bytes that it still lacks
	err     error // the first failure of Write
}

// NewWriter writes the header to w and returns a Writer for the data. A nil
// metadata leaves the metadata out of the file. Neither argument is kept. Nothing
// is written if a name is repeated, reserved or not UTF-8, a type unknown, or a
// shape negative or too large; the error names the tensor.
//
// Tensors are laid out in the order given. To align each of them to its element
// size, declare those with larger elements first.
func NewWriter(w io.Writer, tensors []Info, metadata map[string]string) (*Writer, error) {
	if w == nil {
		return nil, fmt.Errorf("safetensors: %w", errNoWriter)
	}
	head, err := encodeHeader(tensors, metadata)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	if _, err := writeFull(w, head); err != nil {
		return nil, fmt.Errorf("safetensors: writing the header: %w", err)
	}
	declared := make([]Info, len(tensors))
	for i, info := range tensors {
		declared[i] = info.clone()
	}
	return &Writer{w: w, tensors: declared}, nil
}

// Next begins the named tensor. It is an error if the tensor before it is not
// complete or if name is not the next one declared; the Writer is then as before.
func (w *Writer) Next(name string) error {
	if err := w.checkBegun(); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	if w.begun == len(w.tensors) {
		return fmt.Errorf("safetensors: tensor %q follows the last one declared", name)
	}
	next := w.tensors[w.begun]
	if next.Name != name {
		return fmt.Errorf("safetensors: tensor %q is out of order: %q comes next", name, next.Name)
	}
	w.begun++
	w.left = next.Bytes()
	return nil
}

// Write appends p to the data of the tensor that Next began, without keeping it.
// If p is more than the tensor has room for, that is an error and nothing is
// written. After an error from Write, all methods return that error.
func (w *Writer) Write(p []byte) (n int, err error) {
	if w == nil {
		return 0, fmt.Errorf("safetensors: %w", errNoWriter)
	}
	if w.err == nil {
		n, w.err = w.write(p)
	}
	if w.err != nil {
		return n, fmt.Errorf("safetensors: %w", w.err)
	}
	return n, nil
}

func (w *Writer) write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if w.begun == 0 {
		return 0, fmt.Errorf("%d bytes of data before the first tensor was begun", len(p))
	}
	info := w.tensors[w.begun-1]
	if int64(len(p)) > w.left {
		return 0, fmt.Errorf("tensor %q is too long: %d bytes at %d of %d", info.Name, len(p), info.Bytes()-w.left, info.Bytes())
	}
	n, err := writeFull(w.w, p)
	w.left -= int64(n)
	if err != nil {
		return n, fmt.Errorf("writing tensor %q: %w", info.Name, err)
	}
	return n, nil
}

// Close reports whether the file is complete: it is an error if a tensor is
// missing or short, or if a write failed. It does not close the underlying writer.
func (w *Writer) Close() error {
	if err := w.checkBegun(); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	if w.begun < len(w.tensors) {
		return fmt.Errorf("safetensors: tensor %q was not written", w.tensors[w.begun].Name)
	}
	return nil
}

// checkBegun checks that what has been begun has been written in full.
func (w *Writer) checkBegun() error {
	if w == nil {
		return errNoWriter
	}
	if w.err != nil {
		return w.err
	}
	if w.left > 0 {
		info := w.tensors[w.begun-1]
		return fmt.Errorf("tensor %q is short: %d of %d bytes were written", info.Name, info.Bytes()-w.left, info.Bytes())
	}
	return nil
}

// writeFull writes p to w, and gives an error if w took less of it.
func writeFull(w io.Writer, p []byte) (int, error) {
	n, err := w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}
