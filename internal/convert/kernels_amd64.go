//go:build !purego

package convert

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	encode = kernels.New("convert.Encode",
		kernels.At[encodeFunc](cpu.AVX2, encodeAVX2), kernels.At[encodeFunc](cpu.AVX512, encodeAVX512))
	decode = kernels.New("convert.Decode",
		kernels.At[decodeFunc](cpu.AVX2, decodeAVX2), kernels.At[decodeFunc](cpu.AVX512, decodeAVX512))
	maxBits = kernels.New("convert.MaxBits",
		kernels.At[maxBitsFunc](cpu.AVX2, maxBitsAVX2), kernels.At[maxBitsFunc](cpu.AVX512, maxBitsAVX512))
	maxBlocks = kernels.New("convert.MaxBlocks",
		kernels.At[maxBlocksFunc](cpu.AVX2, maxBlocksAVX2), kernels.At[maxBlocksFunc](cpu.AVX512, maxBlocksAVX512))
	maxElements = kernels.New("convert.MaxElements",
		kernels.At[maxElementsFunc](cpu.AVX2, maxElementsAVX2), kernels.At[maxElementsFunc](cpu.AVX512, maxElementsAVX512))
	widenBF16    = kernels.New("convert.WidenBF16", kernels.At[widenFunc](cpu.AVX2, widenBF16AVX2))
	widenF16     = kernels.New("convert.WidenF16", kernels.At[widenFunc](cpu.AVX2, widenF16AVX2))
	truncateBF16 = kernels.New("convert.TruncateBF16", kernels.At[truncateFunc](cpu.AVX2, truncateBF16AVX2))
)

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

//go:noescape
func widenBF16AVX2(dst *float32, src *uint16, n int)

//go:noescape
func widenF16AVX2(dst *float32, src *uint16, n int)

//go:noescape
func truncateBF16AVX2(dst *uint16, src *float32, n int)
