package fp8

import (
	"math"
	"unsafe"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernel"
	"github.com/octavo-fp8/octavo/internal/race"
)

// wideLength is the number of 16-bit values that are widened at a time, so that
// they stay in the nearest cache.
const wideLength = 512

// wide holds 16-bit values as float32.
type wide struct{ buffer [wideLength]float32 }

// bfloat16 returns the first values of src, at most wideLength, as float32.
func (w *wide) bfloat16(src []BFloat16) []float32 {
	dst := w.buffer[:min(len(src), wideLength)]
	level, done := cpu.Current(), 0
	if step := kernel.Step(level); step > 0 && len(dst) >= step {
		n := len(dst) / step * step
		race.Read(src[:n])
		if kernel.WidenBF16(level, &dst[0], (*uint16)(unsafe.Pointer(&src[0])), n) {
			done = n
		}
	}
	for i := done; i < len(dst); i++ {
		dst[i] = src[i].Float32()
	}
	return dst
}

// float16 returns the first values of src, at most wideLength, as float32.
func (w *wide) float16(src []float16.Float16) []float32 {
	dst := w.buffer[:min(len(src), wideLength)]
	level, done := cpu.Current(), 0
	if step := kernel.Step(level); step > 0 && len(dst) >= step {
		n := len(dst) / step * step
		race.Read(src[:n])
		if kernel.WidenF16(level, &dst[0], (*uint16)(unsafe.Pointer(&src[0])), n) {
			done = n
		}
	}
	for i := done; i < len(dst); i++ {
		dst[i] = src[i].Float32()
	}
	return dst
}

// narrow writes the first values, which are bfloat16 values, to dst.
func (w *wide) narrow(dst []BFloat16) {
	level, done := cpu.Current(), 0
	if step := kernel.Step(level); step > 0 && len(dst) >= step {
		n := len(dst) / step * step
		race.Write(dst[:n])
		if kernel.UpperHalves(level, (*uint16)(unsafe.Pointer(&dst[0])), &w.buffer[0], n) {
			done = n
		}
	}
	for i := done; i < len(dst); i++ {
		dst[i] = BFloat16(math.Float32bits(w.buffer[i]) >> 16)
	}
}
