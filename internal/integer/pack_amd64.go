//go:build !purego

package integer

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	lookupKernels  = []kernels.Implementation[lookupFunc]{kernels.At[lookupFunc](cpu.AVX2, lookupAVX2)}
	quadsKernels   = []kernels.Implementation[quadsFunc]{kernels.At[quadsFunc](cpu.AVX2, quadsAVX2)}
	columnsKernels = []kernels.Implementation[columnsFunc]{kernels.At[columnsFunc](cpu.AVX2, columnsAVX2)}
	powersKernels  = []kernels.Implementation[powersFunc]{kernels.At[powersFunc](cpu.AVX2, powersAVX2)}
	outerKernels   = []kernels.Implementation[outerFunc]{kernels.At[outerFunc](cpu.AVX2, outerAVX2)}
	splitKernels   = []kernels.Implementation[splitFunc]{kernels.At[splitFunc](cpu.AVX2, splitAVX2)}
	startsKernels  = []kernels.Implementation[startsFunc]{kernels.At[startsFunc](cpu.AVX2, startsAVX2)}
)

//go:noescape
func lookupAVX2(dst, codes *byte, n int, table *[64]byte)

//go:noescape
func quadsAVX2(dst, src *byte, stride, rows, n int)

//go:noescape
func columnsAVX2(dst, panel *byte, n int)

//go:noescape
func powersAVX2(dst *float32, codes *byte, n int)

//go:noescape
func outerAVX2(c *float32, stride int, rows *float32, n int, columns *[PanelWidth]float32)

//go:noescape
func splitAVX2(dst, nibbles *byte, n int)

//go:noescape
func startsAVX2(dst *int32, dstStride int, values *int8, stride, rows, blocks, octets int, start, bias int32)
