//go:build !purego

package convert

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	maxBlocksHalves = kernels.New("convert.MaxBlocksHalves", kernels.At[maxHalvesFunc](cpu.AVX2, maxBlocksHalvesAVX2))
	scaleBlocks     = kernels.New("convert.ScaleBlocks", kernels.At[scaleFunc](cpu.AVX2, scaleBlocksAVX2))
	spread          = kernels.New("convert.Spread", kernels.At[spreadFunc](cpu.AVX2, spreadAVX2))
)

//go:noescape
func maxBlocksHalvesAVX2(dst *float32, src *uint16, blocks, block int, float16 uint32)

//go:noescape
func scaleBlocksAVX2(dst *float32, blocks, block int, scales *float32, divide uint32)

//go:noescape
func spreadAVX2(dst, stored, factors *float32, n, each int, x *Extremes)

// encodeHalves are the kernels of encode, which widen 16-bit floats where they read them.
var encodeHalves = kernels.New("convert.EncodeHalves",
	kernels.At[encodeFunc](cpu.AVX2, encodeAVX2), kernels.At[encodeFunc](cpu.AVX512, encodeAVX512))
