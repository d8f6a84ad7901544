// Package varint writes and reads binary forms: numbers as unsigned varints, texts and parts
// behind their lengths, and float32 in four bytes, little end first.
package varint

import (
	"encoding/binary"
	"math"

	"github.com/octavo-fp8/octavo/internal/number"
)

// Append appends a number of at least 0.
func Append[T ~int | ~int64 | ~uint64](data []byte, n T) []byte {
	return binary.AppendUvarint(data, uint64(n))
}

// AppendPart appends bytes behind their number.
func AppendPart[T ~string | ~[]byte](data []byte, part T) []byte {
	return append(Append(data, len(part)), part...)
}

// AppendFloats appends values. A NaN becomes 7FC00000.
func AppendFloats[T ~float32](data []byte, values []T) []byte {
	for _, x := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(number.Canonical(float32(x))))
	}
	return data
}

// Reader takes values from Data until there is one that cannot be: then it has Failed, and
// gives zeros.
type Reader struct {
	Data   []byte
	Failed bool
}

// Uint64 reads a number.
func (r *Reader) Uint64() uint64 {
	v, n := binary.Uvarint(r.Data)
	if r.Failed = r.Failed || n <= 0; r.Failed {
		return 0
	}
	r.Data = r.Data[n:]
	return v
}

// Int reads a number that an int holds.
func (r *Reader) Int() int {
	v := r.Uint64()
	if v > math.MaxInt {
		r.Failed = true
		return 0
	}
	return int(v)
}

// Count reads the number of things to come, each of at least a byte.
func (r *Reader) Count() int {
	n := r.Int()
	if n > len(r.Data) {
		r.Failed = true
		return 0
	}
	return n
}

// Bytes reads n bytes.
func (r *Reader) Bytes(n int) []byte {
	if r.Failed = r.Failed || n > len(r.Data); r.Failed {
		return nil
	}
	b := r.Data[:n]
	r.Data = r.Data[n:]
	return b
}

// Part reads bytes behind their number.
func (r *Reader) Part() []byte { return r.Bytes(r.Int()) }

// Floats reads rows times cols values, of sizes that are not negative.
func Floats[T ~float32](r *Reader, rows, cols int) []T {
	if cols > 0 && rows > len(r.Data)/4/cols {
		r.Failed = true
	}
	if r.Failed {
		return nil
	}
	b := r.Bytes(4 * rows * cols)
	values := make([]T, 0, len(b)/4)
	for ; len(b) > 0; b = b[4:] {
		values = append(values, T(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	}
	return values
}
