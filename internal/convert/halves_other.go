//go:build purego || !amd64

package convert

import "github.com/octavo-fp8/octavo/internal/kernels"

var (
	encodeHalves    = kernels.New[encodeFunc]("convert.EncodeHalves")
	maxBlocksHalves = kernels.New[maxHalvesFunc]("convert.MaxBlocksHalves")
	scaleBlocks     = kernels.New[scaleFunc]("convert.ScaleBlocks")
	spread          = kernels.New[spreadFunc]("convert.Spread")
)
