package fp8

import (
	"math"
	"unsafe"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/internal/convert"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/race"
)

// wideLength is the number of 16-bit values that are widened at a time, so that
// they stay in the nearest cache.
const wideLength = 512

// wide holds 16-bit values as float32.
type wide struct{ buffer [wideLength]float32 }

// half is a type of 16 bits.
type half interface {
	float16.Float16 | BFloat16
	Float32() float32
}

// widened returns the first values of src, at most wideLength, as float32 in w.
func widened[T half](w *wide, src []T) []float32 {
	dst := w.buffer[:min(len(src), wideLength)]
	done := widenKernels(dst, src)
	for i := done; i < len(dst); i++ {
		dst[i] = src[i].Float32()
	}
	return dst
}

// widenKernels widens as much of src to dst as kernels can, and returns how much.
func widenKernels[T half](dst []float32, src []T) (done int) {
	level := cpu.Current()
	n := len(dst) / convert.Step * convert.Step
	if n == 0 || !convert.Available(level) {
		return 0
	}
	race.Read(src[:n])
	from := (*uint16)(unsafe.Pointer(&src[0]))
	switch any(src).(type) {
	case []BFloat16:
		convert.WidenBF16(level, &dst[0], from, n)
	case []float16.Float16:
		convert.WidenF16(level, &dst[0], from, n)
	}
	return n
}

// narrow writes the first values, which are bfloat16 values, to dst.
func (w *wide) narrow(dst []BFloat16) {
	level, done := cpu.Current(), 0
	if n := len(dst) / convert.Step * convert.Step; n > 0 && convert.Available(level) {
		race.Write(dst[:n])
		convert.TruncateBF16(level, (*uint16)(unsafe.Pointer(&dst[0])), &w.buffer[0], n)
		done = n
	}
	for i := done; i < len(dst); i++ {
		dst[i] = BFloat16(math.Float32bits(w.buffer[i]) >> 16)
	}
}
