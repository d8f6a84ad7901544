//go:build !purego

package convert

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	maxBlocksBF16 = kernels.New("convert.MaxBlocksBF16", kernels.At[maxHalvesFunc](cpu.AVX2, maxBlocksBF16AVX2))
	scaleBlocks   = kernels.New("convert.ScaleBlocks", kernels.At[scaleFunc](cpu.AVX2, scaleBlocksAVX2))
)

//go:noescape
func maxBlocksBF16AVX2(dst *float32, src *uint16, blocks, block int)

//go:noescape
func scaleBlocksAVX2(dst *float32, blocks, block int, scales *float32, divide uint32)

// encodeHalves are the kernels of encode, which widen 16-bit floats where they read them.
var encodeHalves = kernels.New("convert.EncodeHalves",
	kernels.At[encodeFunc](cpu.AVX2, encodeAVX2), kernels.At[encodeFunc](cpu.AVX512, encodeAVX512))
