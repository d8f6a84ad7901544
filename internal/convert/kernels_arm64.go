//go:build !purego

package convert

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	encode       = kernels.New("convert.Encode", kernels.At[encodeFunc](cpu.NEON, encodeNEON))
	decode       = kernels.New("convert.Decode", kernels.At[decodeFunc](cpu.NEON, decodeNEON))
	maxBits      = kernels.New("convert.MaxBits", kernels.At[maxBitsFunc](cpu.NEON, maxBitsNEON))
	maxBlocks    = kernels.New("convert.MaxBlocks", kernels.At[maxBlocksFunc](cpu.NEON, maxBlocksNEON))
	maxElements  = kernels.New("convert.MaxElements", kernels.At[maxElementsFunc](cpu.NEON, maxElementsNEON))
	widenBF16    = kernels.New("convert.WidenBF16", kernels.At[widenFunc](cpu.NEON, widenBF16NEON))
	widenF16     = kernels.New("convert.WidenF16", kernels.At[widenFunc](cpu.NEON, widenF16NEON))
	truncateBF16 = kernels.New("convert.TruncateBF16", kernels.At[truncateFunc](cpu.NEON, truncateBF16NEON))
)

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

//go:noescape
func widenBF16NEON(dst *float32, src *uint16, n int)

//go:noescape
func widenF16NEON(dst *float32, src *uint16, n int)

//go:noescape
func truncateBF16NEON(dst *uint16, src *float32, n int)
