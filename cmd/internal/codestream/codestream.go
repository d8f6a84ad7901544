// Package codestream is what octavo encode and octavo decode do: they convert streams of
// values without holding them in memory.
package codestream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/tensor"
)

// chunk is how many values are converted at a time.
const chunk = 1 << 16

// Stream is where values come from and go to.
type Stream struct {
	R io.Reader
	W io.Writer

	Format Format // of codes
	Packed bool   // codes lie side by side, the first in the lowest bits; otherwise each has a byte

	Size     int64             // bytes of R, 0 if that is not known
	Progress progress.Reporter // unless nil, hears of bytes read
}

// group is how many values are read and written together: where codes are packed, as many
// as fill whole bytes.
func (s *Stream) group() int {
	if !s.Packed {
		return 1
	}
	n := 1
	for n*s.Format.width%8 != 0 {
		n++
	}
	return n
}

// width is how many bits a code takes.
func (s *Stream) width() int {
	if s.Packed {
		return s.Format.width
	}
	return 8
}

// Encode writes the codes of the little-endian float32 values of a stream, until it or
// the context ends. It returns how many values were converted.
func (s *Stream) Encode(ctx context.Context, p Policy) (int64, error) {
	c, err := s.Format.codec(p)
	if err != nil {
		return 0, err
	}
	values, codes, packed := make([]float32, chunk), make([]byte, chunk), make([]byte, chunk)
	first := uint64(0)
	return s.pump(ctx, "encoding", 4*s.group(), func(in []byte) ([]byte, error) {
		n := len(in) / 4
		for i := range values[:n] {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(in[4*i:]))
		}
		c.encode(codes[:n], values[:n], first)
		first += uint64(n)
		out := packed[:tensor.PackedLen(n, s.width())]
		return out, tensor.PackCodes(out, codes[:n], s.width(), tensor.LowFirst)
	})
}

// Decode writes the values of the codes of a stream as little-endian float32, until it or
// the context ends. It returns how many values were converted. A byte that has more bits
// than the codes is an error that says where it is.
func (s *Stream) Decode(ctx context.Context) (int64, error) {
	c, err := s.Format.codec(Policy{})
	if err != nil {
		return 0, err
	}
	values, codes, out := make([]float32, chunk), make([]byte, chunk), make([]byte, 0, 4*chunk)
	first := int64(0)
	return s.pump(ctx, "decoding", tensor.PackedLen(s.group(), s.width()), func(in []byte) ([]byte, error) {
		codes := codes[:len(in)*8/s.width()]
		if err := tensor.UnpackCodes(codes, in, s.width(), tensor.LowFirst); err != nil {
			return nil, err
		}
		valid := slices.IndexFunc(codes, func(code byte) bool { return code>>s.Format.bits != 0 })
		if valid < 0 {
			valid = len(codes)
		}
		c.decode(values[:valid], codes[:valid])
		out = out[:0]
		for _, v := range values[:valid] {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
		first += int64(valid)
		if valid < len(codes) {
			return out, fmt.Errorf("byte %#02x at %d of standard input is no code of %s, which has %d bits", codes[valid], first, s.Format.Name, s.Format.bits)
		}
		return out, nil
	})
}

// pump writes what convert makes of groups of values that take size bytes each, chunk by
// chunk. An incomplete group at the end is an error, and so is what convert cannot
// convert; what it could is written.
func (s *Stream) pump(ctx context.Context, op string, size int, convert func(in []byte) ([]byte, error)) (int64, error) {
	in := make([]byte, chunk/s.group()*size)
	total := int64(0)
	values := func() int64 { return total / int64(size) * int64(s.group()) }
	for {
		n, readErr := s.read(ctx, in)
		if ctx.Err() != nil {
			return values(), context.Cause(ctx)
		}
		out, convertErr := convert(in[:n-n%size])
		if err := s.write(ctx, out); err != nil {
			return values(), fmt.Errorf("writing standard output: %w", err)
		}
		if convertErr != nil {
			return values(), convertErr
		}
		total += int64(n)
		if s.Progress != nil {
			s.Progress.Progress(op, total, s.Size)
		}
		switch {
		case readErr == nil:
		case !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF):
			return values(), fmt.Errorf("reading standard input: %w", readErr)
		case n%size != 0 && s.group() > 1:
			return values(), fmt.Errorf("standard input has %d bytes, which is not a multiple of %d: packed codes of %d bits fill whole bytes by %d",
				total, size, s.Format.bits, s.group())
		case n%size != 0:
			return values(), fmt.Errorf("standard input has %d bytes, which is not a multiple of %d: the last value lacks %d",
				total, size, size-n%size)
		default:
			return values(), nil
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
