//go:build !purego

package convert

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

// encodeHalves are the kernels of encode, which widen 16-bit floats where they read them.
var encodeHalves = kernels.New("convert.EncodeHalves",
	kernels.At[encodeFunc](cpu.AVX2, encodeAVX2), kernels.At[encodeFunc](cpu.AVX512, encodeAVX512))
