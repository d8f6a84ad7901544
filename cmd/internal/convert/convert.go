// Package convert is what octavo encode and octavo decode do: they convert streams of
// values without holding them in memory.
package convert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
)

// chunk is how many values are converted at a time.
const chunk = 1 << 16

// Encode writes the codes of the little-endian float32 values that r has.
func Encode(w io.Writer, r io.Reader, f fp8.Format, p fp8.Policy) error {
	values, codes := make([]float32, chunk), make([]byte, chunk)
	first := uint64(0)
	return pump(w, r, 4, func(in []byte) []byte {
		n := len(in) / 4
		for i := range values[:n] {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(in[4*i:]))
		}
		fp8.EncodeScaled(codes, values[:n], f, p, fp8.Scale{}, first, nil)
		first += uint64(n)
		return codes[:n]
	})
}

// Decode writes the values of the codes that r has as little-endian float32.
func Decode(w io.Writer, r io.Reader, f fp8.Format) error {
	values, out := make([]float32, chunk), make([]byte, 0, 4*chunk)
	return pump(w, r, 1, func(in []byte) []byte {
		fp8.Decode(values, in, f)
		out = out[:0]
		for _, v := range values[:len(in)] {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
		return out
	})
}

// pump writes what convert makes of r's elements of the given size, chunk by
// chunk. An incomplete element at the end is an error.
func pump(w io.Writer, r io.Reader, size int, convert func(in []byte) []byte) error {
	in := make([]byte, chunk*size)
	total := int64(0)
	for {
		n, readErr := io.ReadFull(r, in)
		total += int64(n)
		if _, err := w.Write(convert(in[:n-n%size])); err != nil {
			return fmt.Errorf("writing standard output: %w", err)
		}
		switch {
		case readErr == nil:
		case !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF):
			return fmt.Errorf("reading standard input: %w", readErr)
		case n%size != 0:
			return fmt.Errorf("standard input has %d bytes, which is not a multiple of %d: the last value lacks %d",
				total, size, size-n%size)
		default:
			return nil
		}
	}
}
