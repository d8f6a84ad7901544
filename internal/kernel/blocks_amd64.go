//go:build !purego

package kernel

import "github.com/octavo-fp8/octavo/internal/cpu"

// EncodeBlocks is [Encode] of blocks, of a positive multiple of [Step] elements,
// with a scale for each; e's own does not count. Only for levels with [Blocks].
func EncodeBlocks(l cpu.Level, dst *byte, src *float32, n int, e *Encoding, c *Counts, scales *float32, block int) {
	encodeAVX512(dst, src, n, e, c, scales, block)
}

// MaxBlocks writes the float32 of [MaxBits] of each of the blocks of src, of a
// positive multiple of [Step] elements, to dst. Only for levels with [Blocks].
func MaxBlocks(l cpu.Level, dst, src *float32, blocks, block int) {
	maxBlocksAVX512(dst, src, blocks, block)
}

//go:noescape
func maxBlocksAVX512(dst, src *float32, blocks, block int)
