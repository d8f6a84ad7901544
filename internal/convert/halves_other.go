//go:build purego || !amd64

package convert

import "github.com/octavo-fp8/octavo/internal/kernels"

var (
	encodeHalves  = kernels.New[encodeFunc]("convert.EncodeHalves")
	maxBlocksBF16 = kernels.New[maxHalvesFunc]("convert.MaxBlocksBF16")
	scaleBlocks   = kernels.New[scaleFunc]("convert.ScaleBlocks")
)
