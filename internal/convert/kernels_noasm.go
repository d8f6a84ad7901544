//go:build purego || !(amd64 || arm64)

package convert

import "github.com/octavo-fp8/octavo/internal/kernels"

var (
	encode       = kernels.New[encodeFunc]("convert.Encode")
	decode       = kernels.New[decodeFunc]("convert.Decode")
	maxBits      = kernels.New[maxBitsFunc]("convert.MaxBits")
	maxBlocks    = kernels.New[maxBlocksFunc]("convert.MaxBlocks")
	maxElements  = kernels.New[maxElementsFunc]("convert.MaxElements")
	widenBF16    = kernels.New[widenFunc]("convert.WidenBF16")
	widenF16     = kernels.New[widenFunc]("convert.WidenF16")
	truncateBF16 = kernels.New[truncateFunc]("convert.TruncateBF16")
)
