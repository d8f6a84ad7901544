// Package halves converts between float32 and floats of 16 bits, slices with kernels where
// there are some.
package halves

import (
	"unsafe"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/convert"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/race"
	"github.com/octavo-fp8/octavo/internal/rounding"
)

// Half is a type of 16 bits.
type Half interface {
	float16.Float16 | fp8.BFloat16
	Float32() float32
}

const short = "halves: destination shorter than source"

// longest is the number of elements that a kernel is given at a time: it cannot be
// interrupted.
const longest = 1 << 14

// Widen writes the values of src to dst[:len(src)], exactly; a NaN stays one of the same
// sign. It panics if dst is shorter.
func Widen[T Half](dst []float32, src []T) {
	if len(dst) < len(src) {
		panic(short)
	}
	dst = dst[:len(src)]
	for level := cpu.Current(); len(src) >= convert.Step && convert.Available(level); {
		n := min(len(src), longest) / convert.Step * convert.Step
		race.Read(src[:n])
		race.Write(dst[:n])
		from := (*uint16)(unsafe.Pointer(&src[0]))
		switch any(src).(type) {
		case []fp8.BFloat16:
			convert.WidenBF16(level, &dst[0], from, n)
		default:
			convert.WidenF16(level, &dst[0], from, n)
		}
		dst, src = dst[n:], src[n:]
	}
	for i, x := range src {
		dst[i] = x.Float32()
	}
}

// NarrowBF16 rounds the values of src, which it overwrites, to dst[:len(src)] as
// [fp8.BFloat16FromFloat32] does. It panics if dst is shorter.
func NarrowBF16(dst []fp8.BFloat16, src []float32) {
	if len(dst) < len(src) {
		panic(short)
	}
	dst = dst[:len(src)]
	for level := cpu.Current(); len(src) >= convert.Step && convert.Available(level); {
		n := min(len(src), longest) / convert.Step * convert.Step
		rounding.NearestBF16(src[:n], src[:n])
		race.Read(src[:n])
		race.Write(dst[:n])
		convert.TruncateBF16(level, (*uint16)(unsafe.Pointer(&dst[0])), &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	for i, x := range src {
		dst[i] = fp8.BFloat16FromFloat32(x)
	}
}
