package safetensors

import (
	"fmt"
	"io"
	"sync"
)

// WriterAt writes the data of a safetensors file in any order, holding none of it.
// Every byte of every tensor declared to [NewWriterAt] is to be written once; at the
// end call Close. WriteAt may be called by several goroutines at once.
type WriterAt struct {
	w      io.WriterAt
	places []place // in the order declared
	index  map[string]int

	mu  sync.Mutex // guards the rest, and left in places
	err error      // the first failure of WriteAt
}

// place is where a tensor lies.
type place struct {
	Info
	begin int64 // in the file
	left  int64 // bytes that it still lacks
}

// NewWriterAt is [NewWriter] for data that comes in any order: it writes the same
// header to w, with the same errors.
func NewWriterAt(w io.WriterAt, tensors []Info, metadata map[string]string) (*WriterAt, error) {
	if w == nil {
		return nil, fmt.Errorf("safetensors: %w", errNoWriter)
	}
	head, err := encodeHeader(tensors, metadata)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	if _, err := writeFull(io.NewOffsetWriter(w, 0), head); err != nil {
		return nil, fmt.Errorf("safetensors: writing the header: %w", err)
	}
	wa := &WriterAt{w: w, places: make([]place, len(tensors)), index: make(map[string]int, len(tensors))}
	end := int64(len(head))
	for i, info := range tensors {
		wa.places[i] = place{Info: info.clone(), begin: end, left: info.Bytes()}
		wa.index[info.Name] = i
		end += info.Bytes()
	}
	return wa, nil
}

// WriteAt writes p to the data of the named tensor, off bytes from its beginning,
// without keeping it. If there is no such tensor, or if p reaches past its end, that
// is an error and nothing is written. After an error, all methods return that error.
func (w *WriterAt) WriteAt(name string, p []byte, off int64) error {
	if w == nil {
		return fmt.Errorf("safetensors: %w", errNoWriter)
	}
	at, err := w.begin(name, len(p), off)
	if err == nil {
		_, err = writeFull(io.NewOffsetWriter(w.w, at.begin+off), p)
		if err != nil {
			err = fmt.Errorf("writing tensor %q: %w", name, err)
		}
	}
	if err = w.end(at, len(p), err); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}

// begin returns where n bytes are to go.
func (w *WriterAt) begin(name string, n int, off int64) (*place, error) {
	i, ok := w.index[name]
	if !ok {
		return nil, fmt.Errorf("tensor %q was not declared", name)
	}
	at := &w.places[i]
	if err := checkPart(at.Info, n, off); err != nil {
		return nil, err
	}
	return at, w.failure()
}

// end notes that n bytes were written, or not.
func (w *WriterAt) end(at *place, n int, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if w.err = err; err == nil {
		at.left -= int64(n)
	}
	return err
}

func (w *WriterAt) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close reports whether the file is complete: it is an error if as many bytes as a
// tensor has were not written to it, or if a write failed. It does not close the
// underlying writer.
func (w *WriterAt) Close() error {
	if w == nil {
		return fmt.Errorf("safetensors: %w", errNoWriter)
	}
	if err := w.failure(); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	for _, p := range w.places {
		if p.left != 0 {
			return fmt.Errorf("safetensors: tensor %q has %d bytes, but %d were written", p.Name, p.Bytes(), p.Bytes()-p.left)
		}
	}
	return nil
}
