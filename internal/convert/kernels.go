package convert

import (
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

// Step is the number of elements of which kernels take multiples.
const Step = 16

// The types of kernels. Each keeps no pointer.
type (
	encodeFunc      func(dst *byte, src *float32, n int, e *Encoding, scales *float32, layout Layout, c *Counts)
	decodeFunc      func(dst *float32, src *byte, n int, d *Decoding) (special uint32)
	maxBitsFunc     func(src *float32, n int) uint32
	maxBlocksFunc   func(dst, src *float32, blocks, block int)
	maxElementsFunc func(dst, src *float32, n int)
	widenFunc       func(dst *float32, src *uint16, n int)
	truncateFunc    func(dst *uint16, src *float32, n int)
	maxHalvesFunc   func(dst *float32, src *uint16, blocks, block int, float16 uint32)
	scaleFunc       func(dst *float32, blocks, block int, scales *float32, divide uint32)
	spreadFunc      func(dst, stored, factors *float32, n, each int, x *Extremes)
)

// Available reports whether level l has kernels. The functions below panic at one
// that has none.
func Available(l cpu.Level) bool {
	_, ok := encode.For(l)
	return ok
}

// Encode encodes n values of src, a positive multiple of [Step], to dst and
// overwrites c with what happened. e.Source is Float32.
func Encode(l cpu.Level, dst *byte, src *float32, n int, e *Encoding, scales *float32, layout Layout, c *Counts) {
	f, _ := encode.For(l)
	f(kernels.NoEscape(dst), kernels.NoEscape(src), n, kernels.NoEscape(e), kernels.NoEscape(scales), layout, kernels.NoEscape(c))
}

// HalvesAvailable reports whether level l has kernels for [EncodeHalves], and for
// [NearestEvenOfBF16]. Elsewhere 16-bit floats are widened first.
func HalvesAvailable(l cpu.Level) bool {
	_, ok := encodeHalves.For(l)
	return ok
}

// EncodeHalves is [Encode] of 16-bit floats of the type that e.Source says.
func EncodeHalves(l cpu.Level, dst *byte, src *uint16, n int, e *Encoding, scales *float32, layout Layout, c *Counts) {
	f, _ := encodeHalves.For(l)
	f(kernels.NoEscape(dst), (*float32)(unsafe.Pointer(kernels.NoEscape(src))), n, kernels.NoEscape(e), kernels.NoEscape(scales), layout, kernels.NoEscape(c))
}

// EncodeBlocks is [Encode], or [EncodeHalves], of as many blocks side by side as c has Counts.
// A block is a positive multiple of [Step] values, of the type that e.Source says, and scales
// has its scale the given number of places behind that of the block before.
func EncodeBlocks(l cpu.Level, dst *byte, src unsafe.Pointer, block int, e *Encoding, scales *float32, places int, c []Counts) {
	f, _ := encode.For(l)
	size := 4
	if e.Source != Float32 {
		f, _ = encodeHalves.For(l)
		size = 2
	}
	for i := range c {
		to, from, scale := unsafe.Add(unsafe.Pointer(dst), i*block), unsafe.Add(src, i*block*size), unsafe.Add(unsafe.Pointer(scales), 4*i*places)
		f(kernels.NoEscape((*byte)(to)), kernels.NoEscape((*float32)(from)), block, kernels.NoEscape(e), kernels.NoEscape((*float32)(scale)), One, kernels.NoEscape(&c[i]))
		e.Index += uint32(block)
	}
}

// Decode decodes n codes of src, a positive multiple of [Step], to dst. It is
// right for codes that are finite; special tells whether there was another.
func Decode(l cpu.Level, dst *float32, src *byte, n int, d *Decoding) (special bool) {
	f, _ := decode.For(l)
	return f(kernels.NoEscape(dst), kernels.NoEscape(src), n, kernels.NoEscape(d)) != 0
}

// MaxBits returns the largest bits of |x| of n values of src, a positive multiple
// of [Step]: above 7F800000 if one is NaN.
func MaxBits(l cpu.Level, src *float32, n int) uint32 {
	f, _ := maxBits.For(l)
	return f(kernels.NoEscape(src), n)
}

// MaxBlocks raises each of dst, which are not negative, to the largest |x| of its
// block of src, of a positive multiple of [Step] elements. It is 7FC00000 if any of
// them, or dst before, is NaN.
func MaxBlocks(l cpu.Level, dst, src *float32, blocks, block int) {
	f, _ := maxBlocks.For(l)
	f(kernels.NoEscape(dst), kernels.NoEscape(src), blocks, block)
}

// MaxElements is [MaxBlocks] for n blocks of one element, a positive multiple of
// [Step].
func MaxElements(l cpu.Level, dst, src *float32, n int) {
	f, _ := maxElements.For(l)
	f(kernels.NoEscape(dst), kernels.NoEscape(src), n)
}

// WidenBF16 writes n bfloat16 values of src, a positive multiple of [Step], as
// float32 to dst. A NaN keeps its sign.
func WidenBF16(l cpu.Level, dst *float32, src *uint16, n int) {
	f, _ := widenBF16.For(l)
	f(kernels.NoEscape(dst), kernels.NoEscape(src), n)
}

// WidenF16 is [WidenBF16] for float16.
func WidenF16(l cpu.Level, dst *float32, src *uint16, n int) {
	f, _ := widenF16.For(l)
	f(kernels.NoEscape(dst), kernels.NoEscape(src), n)
}

// TruncateBF16 writes the upper 16 bits of n float32 values of src, a positive
// multiple of [Step], to dst: the bfloat16 of a value that is one.
func TruncateBF16(l cpu.Level, dst *uint16, src *float32, n int) {
	f, _ := truncateBF16.For(l)
	f(kernels.NoEscape(dst), kernels.NoEscape(src), n)
}

// MaxBlocksHalves is [MaxBlocks] of 16-bit floats of a type. ok is false, and nothing is
// done, where level l has no kernel.
func MaxBlocksHalves(l cpu.Level, dst *float32, src *uint16, blocks, block int, of Source) (ok bool) {
	f, ok := maxBlocksHalves.For(l)
	if ok {
		float16 := uint32(0)
		if of == Float16 {
			float16 = 1
		}
		f(kernels.NoEscape(dst), kernels.NoEscape(src), blocks, block, float16)
	}
	return ok
}

// ScaleBlocks multiplies each block of dst, of a positive multiple of [Step] elements, by its
// scale, or divides it where divide is 1. ok is false, and nothing is done, where level l has
// no kernel.
func ScaleBlocks(l cpu.Level, dst *float32, blocks, block int, scales *float32, divide uint32) (ok bool) {
	f, ok := scaleBlocks.For(l)
	if ok {
		f(kernels.NoEscape(dst), blocks, block, kernels.NoEscape(scales), divide)
	}
	return ok
}

// Spread writes each of n factors to dst as often as each says, and returns the extremes of
// them and of n scales that are stored. Both numbers are positive. ok is false, and nothing is done, where level l
// has no kernel.
func Spread(l cpu.Level, dst, stored, factors *float32, n, each int) (x Extremes, ok bool) {
	f, ok := spread.For(l)
	if ok {
		f(kernels.NoEscape(dst), kernels.NoEscape(stored), kernels.NoEscape(factors), n, each, kernels.NoEscape(&x))
	}
	return x, ok
}
