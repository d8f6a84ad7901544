//go:build !purego

package convert

import "github.com/octavo-fp8/octavo/internal/cpu"

// Encode encodes n values of src, a positive multiple of [Step], to dst with the
// kernel of level l, which must have one, and overwrites c with what happened.
func Encode(l cpu.Level, dst *byte, src *float32, n int, e *Encoding, scales *float32, layout Layout, c *Counts) {
	if l >= cpu.AVX512 {
		encodeAVX512(dst, src, n, e, scales, layout, c)
	} else {
		encodeAVX2(dst, src, n, e, scales, layout, c)
	}
}

// Decode decodes n codes of src, a positive multiple of [Step], to dst. It is
// right for codes that are finite; special tells whether there was another.
func Decode(l cpu.Level, dst *float32, src *byte, n int, d *Decoding) (special bool) {
	if l >= cpu.AVX512 {
		return decodeAVX512(dst, src, n, d) != 0
	}
	return decodeAVX2(dst, src, n, d) != 0
}

// MaxBits returns the largest bits of |x| of n values of src, a positive multiple
// of [Step]: above 7F800000 if one is NaN.
func MaxBits(l cpu.Level, src *float32, n int) uint32 {
	if l >= cpu.AVX512 {
		return maxBitsAVX512(src, n)
	}
	return maxBitsAVX2(src, n)
}

// MaxBlocks raises each of dst to the [MaxBits] of its block of src, of a positive
// multiple of [Step] elements.
func MaxBlocks(l cpu.Level, dst, src *float32, blocks, block int) {
	if l >= cpu.AVX512 {
		maxBlocksAVX512(dst, src, blocks, block)
	} else {
		maxBlocksAVX2(dst, src, blocks, block)
	}
}

// MaxElements raises each of n values of dst, a positive multiple of [Step], to
// the bits of |x| of src.
func MaxElements(l cpu.Level, dst, src *float32, n int) {
	if l >= cpu.AVX512 {
		maxElementsAVX512(dst, src, n)
	} else {
		maxElementsAVX2(dst, src, n)
	}
}

//go:noescape
func encodeAVX512(dst *byte, src *float32, n int, e *Encoding, scales *float32, layout Layout, c *Counts)

//go:noescape
func decodeAVX512(dst *float32, src *byte, n int, d *Decoding) uint32

//go:noescape
func maxBitsAVX512(src *float32, n int) uint32

//go:noescape
func maxBlocksAVX512(dst, src *float32, blocks, block int)

//go:noescape
func maxElementsAVX512(dst, src *float32, n int)

//go:noescape
func encodeAVX2(dst *byte, src *float32, n int, e *Encoding, scales *float32, layout Layout, c *Counts)

//go:noescape
func decodeAVX2(dst *float32, src *byte, n int, d *Decoding) uint32

//go:noescape
func maxBitsAVX2(src *float32, n int) uint32

//go:noescape
func maxBlocksAVX2(dst, src *float32, blocks, block int)

//go:noescape
func maxElementsAVX2(dst, src *float32, n int)
