//go:build !purego

package microkernel

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var byLevel = register(kernels.At(cpu.AVX2, &avx2), kernels.At(cpu.AVX512, &avx512))

var dots = kernels.New("microkernel.Dots", kernels.At(cpu.AVX512BF16, &avx512bf16))

var avx512bf16 = Kernels{
	MR: 4, NR: 32, Direct: true,
	Multiply: multiplyDots,
	FewRows:  8, MultiplyFew: multiplyFewDots,
	Transpose: transposeAVX512, TransposeCols: 16,
	Dots: &Dots{PackRows: packDotRows, PackPanel: packDotPanel, QuadRows: quadRows, QuadPanel: quadPanel},
}

//go:noescape
func multiplyDots(t *Task)

//go:noescape
func multiplyFewDots(t *Task)

//go:noescape
func packDotRows(dst *uint16, dstStride int, codes *byte, stride, rows, n int, t *BFloat16Table)

//go:noescape
func packDotPanel(dst *uint16, codes *byte, n int, t *BFloat16Table)

//go:noescape
func quadRows(values *float32, n int)

//go:noescape
func quadPanel(values *float32, n int)

var avx512 = Kernels{
	MR: 4, NR: 32, Direct: true,
	Multiply: multiplyAVX512, MultiplyRounded: multiplyRoundedAVX512,
	MultiplyCodes: multiplyCodesAVX512, MultiplyCodesRow: multiplyCodesRowAVX512,
	MultiplyPairs: multiplyPairsAVX512, DecodePairs: decodePairsAVX512, PairUp: pairUpAVX512,
	FewRows: 8, MultiplyFew: multiplyFewAVX512,
	DecodeFloat16: decodeFloat16AVX512, DecodeRows: decodeRowsAVX512, Contains: containsAVX2,
	Transpose: transposeAVX512, TransposeCols: 16,
}

//go:noescape
func multiplyAVX512(t *Task)

//go:noescape
func multiplyRoundedAVX512(t *Task)

//go:noescape
func multiplyCodesAVX512(t *Task)

//go:noescape
func multiplyCodesRowAVX512(t *Task)

//go:noescape
func multiplyPairsAVX512(t *Task)

//go:noescape
func decodePairsAVX512(dst *float32, codes *byte, n int, multiplier, mask uint64, ahead int)

//go:noescape
func pairUpAVX512(panel *float32, n int)

//go:noescape
func multiplyFewAVX512(t *Task)

//go:noescape
func decodeFloat16AVX512(dst *float32, codes *byte, n int, multiplier, mask uint64, ahead int)

//go:noescape
func decodeRowsAVX512(dst *float32, dstStride int, codes *byte, stride, rows, n int, v *Float16View)

//go:noescape
func transposeAVX512(dst, src *byte, stride, rows, n int)

// fastDenormals is whether multiply-adds take no longer where an operand is denormal: so on
// AMD's Zen, measured on Zen 3, while Intel's processors help themselves with microcode.
var fastDenormals = cpu.Zen()

var avx2 = Kernels{
	MR: 3, NR: 16, Direct: true,
	Multiply: multiplyAVX2, MultiplyRounded: multiplyRoundedAVX2,
	MultiplyCodes: multiplyCodesAVX2, MultiplyCodesRow: multiplyCodesRowAVX2,
	MultiplyCodeBlocks: multiplyCodeBlocksAVX2,
	FewRows:            3, MultiplyFew: multiplyFewAVX2,
	DecodeFloat16: decodeFloat16AVX2, DecodeRows: decodeRowsAVX2, Contains: containsAVX2,
	Transpose: transposeAVX2, TransposeCols: 32,
}

//go:noescape
func multiplyAVX2(t *Task)

//go:noescape
func multiplyRoundedAVX2(t *Task)

//go:noescape
func multiplyCodesAVX2(t *Task)

//go:noescape
func multiplyCodesRowAVX2(t *Task)

//go:noescape
func multiplyCodeBlocksAVX2(t *Task)

//go:noescape
func multiplyFewAVX2(t *Task)

//go:noescape
func decodeFloat16AVX2(dst *float32, codes *byte, n int, multiplier, mask uint64, ahead int)

//go:noescape
func decodeRowsAVX2(dst *float32, dstStride int, codes *byte, stride, rows, n int, v *Float16View)

//go:noescape
func containsAVX2(codes *byte, n int, mask, value uint64) bool

//go:noescape
func transposeAVX2(dst, src *byte, stride, rows, n int)
