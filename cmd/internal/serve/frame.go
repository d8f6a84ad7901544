package serve

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/octavo-fp8/octavo/internal/memory"
)

const (
	magic      = "OCTF"
	prefixSize = 16
	mostHeader = 1 << 20
)

// errFrame is of input that is no frame, after which nothing can be found any more.
var errFrame = errors.New("serve: no frame")

// frame is what one side tells the other.
type frame struct{ header, data []byte }

// readFrame reads a frame. It returns io.EOF where the input ends before it, and errFrame
// where it ends in it or holds something else. No more is allocated than twice what comes.
func readFrame(r io.Reader) (f frame, err error) {
	var prefix [prefixSize]byte
	n, err := io.ReadFull(r, prefix[:])
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return f, fmt.Errorf("%w: the input ends after %d of the %d bytes that begin one", errFrame, n, prefixSize)
	case err != nil:
		return f, err
	case string(prefix[:4]) != magic:
		return f, fmt.Errorf("%w: it begins with %q and not with %q", errFrame, prefix[:4], magic)
	}
	header, data := binary.LittleEndian.Uint32(prefix[4:]), binary.LittleEndian.Uint64(prefix[8:])
	switch {
	case header > mostHeader:
		return f, fmt.Errorf("%w: a header of %d bytes: want %d at most", errFrame, header, mostHeader)
	}
	if err := memory.Check(int64(min(data, math.MaxInt64)), 1, "the data of the frame", "send less at a time"); err != nil {
		return f, fmt.Errorf("%w: %w", errFrame, err)
	}
	if f.header, err = readBytes(r, int64(header), "header"); err != nil {
		return f, err
	}
	f.data, err = readBytes(r, int64(data), "data")
	return f, err
}

// readBytes reads n bytes of a part of a frame into memory that grows as they come.
func readBytes(r io.Reader, n int64, part string) ([]byte, error) {
	b, have := []byte(nil), 0
	for int64(have) < n {
		grown := make([]byte, min(n, max(1<<20, 2*int64(have))))
		copy(grown, b)
		b = grown
		m, err := io.ReadFull(r, b[have:])
		have += m
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("%w: the input ends after %d of the %d bytes of its %s", errFrame, have, n, part)
		case err != nil:
			return nil, err
		}
	}
	return b, nil
}

// writeFrame writes a frame.
func writeFrame(w io.Writer, header any, data []byte) error {
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	b := make([]byte, 0, prefixSize+len(text))
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
	if len(data) < 1<<16 { // one write
		_, err = w.Write(append(append(b, text...), data...))
		return err
	}
	if _, err := w.Write(append(b, text...)); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}
