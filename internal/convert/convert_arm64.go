//go:build !purego

package convert

import "github.com/octavo-fp8/octavo/internal/cpu"

// Encode encodes n values of src, a positive multiple of [Step], to dst with the
// kernel of level l, which must have one, and overwrites c with what happened.
func Encode(l cpu.Level, dst *byte, src *float32, n int, e *Encoding, scales *float32, layout Layout, c *Counts) {
	encodeNEON(dst, src, n, e, scales, layout, c)
}

// Decode decodes n codes of src, a positive multiple of [Step], to dst. It is
// right for codes that are finite; special tells whether there was another.
func Decode(l cpu.Level, dst *float32, src *byte, n int, d *Decoding) (special bool) {
	return decodeNEON(dst, src, n, d) != 0
}

// MaxBits returns the largest bits of |x| of n values of src, a positive multiple
// of [Step]: above 7F800000 if one is NaN.
func MaxBits(l cpu.Level, src *float32, n int) uint32 {
	return maxBitsNEON(src, n)
}

// MaxBlocks raises each of dst to the [MaxBits] of its block of src, of a positive
// multiple of [Step] elements.
func MaxBlocks(l cpu.Level, dst, src *float32, blocks, block int) {
	maxBlocksNEON(dst, src, blocks, block)
}

// MaxElements raises each of n values of dst, a positive multiple of [Step], to
// the bits of |x| of src.
func MaxElements(l cpu.Level, dst, src *float32, n int) { maxElementsNEON(dst, src, n) }

//go:noescape
func encodeNEON(dst *byte, src *float32, n int, e *Encoding, scales *float32, layout Layout, c *Counts)

//go:noescape
func decodeNEON(dst *float32, src *byte, n int, d *Decoding) uint32

//go:noescape
func maxBitsNEON(src *float32, n int) uint32

//go:noescape
func maxBlocksNEON(dst, src *float32, blocks, block int)

//go:noescape
func maxElementsNEON(dst, src *float32, n int)
