// Package convert is what octavo encode and octavo decode do: they convert streams of
// values without holding them in memory.
package convert

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/progress"
)

// chunk is how many values are converted at a time.
const chunk = 1 << 16

// Stream is where values come from and go to.
type Stream struct {
	R io.Reader
	W io.Writer

	Size     int64             // bytes of R, 0 if that is not known
	Progress progress.Reporter // unless nil, hears of bytes read
}

// Encode writes the codes of the little-endian float32 values of a stream, until it or
// the context ends. It returns how many values were converted.
func (s *Stream) Encode(ctx context.Context, f fp8.Format, p fp8.Policy) (int64, error) {
	values, codes := make([]float32, chunk), make([]byte, chunk)
	first := uint64(0)
	return s.pump(ctx, "encoding", 4, func(in []byte) []byte {
		n := len(in) / 4
		for i := range values[:n] {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(in[4*i:]))
		}
		fp8.EncodeScaled(codes, values[:n], f, p, fp8.Scale{}, first, nil)
		first += uint64(n)
		return codes[:n]
	})
}

// Decode writes the values of the codes of a stream as little-endian float32, until it or
// the context ends. It returns how many values were converted.
func (s *Stream) Decode(ctx context.Context, f fp8.Format) (int64, error) {
	values, out := make([]float32, chunk), make([]byte, 0, 4*chunk)
	return s.pump(ctx, "decoding", 1, func(in []byte) []byte {
		fp8.Decode(values, in, f)
		out = out[:0]
		for _, v := range values[:len(in)] {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
		return out
	})
}

// pump writes what convert makes of the elements of the given size, chunk by chunk. An
// incomplete element at the end is an error.
func (s *Stream) pump(ctx context.Context, op string, size int, convert func(in []byte) []byte) (int64, error) {
	in := make([]byte, chunk*size)
	total := int64(0)
	for {
		n, readErr := s.read(ctx, in)
		if ctx.Err() != nil {
			return total / int64(size), context.Cause(ctx)
		}
		if err := s.write(ctx, convert(in[:n-n%size])); err != nil {
			return total / int64(size), fmt.Errorf("writing standard output: %w", err)
		}
		total += int64(n)
		if s.Progress != nil {
			s.Progress.Progress(op, total, s.Size)
		}
		switch {
		case readErr == nil:
		case !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF):
			return total / int64(size), fmt.Errorf("reading standard input: %w", readErr)
		case n%size != 0:
			return total / int64(size), fmt.Errorf("standard input has %d bytes, which is not a multiple of %d: the last value lacks %d",
				total, size, size-n%size)
		default:
			return total / int64(size), nil
		}
	}
}

// read fills in. A read that waits for input when the context ends is left behind.
func (s *Stream) read(ctx context.Context, in []byte) (int, error) {
	done := begin(func() (int, error) { return io.ReadFull(s.R, in) })
	select {
	case r := <-done:
		return r.n, r.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// write writes out. A write that waits when the context ends has a second, so that what
// is written ends with a whole value unless nobody takes it.
func (s *Stream) write(ctx context.Context, out []byte) error {
	done := begin(func() (int, error) { return s.W.Write(out) })
	select {
	case r := <-done:
		return r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.err
	case <-time.After(time.Second):
		return context.Cause(ctx)
	}
}

// transfer is what a read or a write returned.
type transfer struct {
	n   int
	err error
}

// begin does something meanwhile.
func begin(do func() (int, error)) <-chan transfer {
	done := make(chan transfer, 1)
	go func() {
		n, err := do()
		done <- transfer{n, err}
	}()
	return done
}
