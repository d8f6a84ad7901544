package tensor

import (
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/convert"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/race"
)

const shortDestination = "tensor: destination is not as long as the tensor's shape says"

const noSuchRows = "tensor: destination is not that of whole rows of the tensor"

// Dequantize writes the values of t, row-major and dense, to dst: decode(code)
// times scale, times or divided by the outer scale where there is one, rounded once to
// float32 (to float64 for float64, which holds all without an outer scale exactly) and
// then to T where that is narrower. It panics if t does not pass its Check or dst is not of
// t's length. It takes no context: it reads one byte for each value, a few
// milliseconds for a million; give it [Tensor.RowRange]s of a tensor of billions.
func Dequantize[T fp8.Float](dst []T, t *Tensor) {
	t.mustBeWhole()
	rows, cols := t.Dims()
	if len(dst) != rows*cols {
		panic(shortDestination)
	}
	dequantizeRows(dst, t, 0)
}

// DequantizeRows is [Dequantize] of rows of the matrix from row lo on, as many as dst holds:
// lo need not be where a block starts. It panics, too, if those are not whole rows of t.
func DequantizeRows[T fp8.Float](dst []T, t *Tensor, lo int) {
	t.mustBeWhole()
	rows, cols := t.Dims()
	n := 0
	if cols > 0 {
		n = len(dst) / cols
	}
	if n*cols != len(dst) || lo < 0 || lo > rows-n {
		panic(noSuchRows)
	}
	dequantizeRows(dst, t, lo)
}

func dequantizeRows[T fp8.Float](dst []T, t *Tensor, lo int) {
	_, cols := t.Dims()
	for i := lo; len(dst) > 0; i++ {
		dequantizeRow(dst[:cols], t, i)
		dst = dst[cols:]
	}
}

// dequantizeRow writes the values of row i of the matrix.
func dequantizeRow[T fp8.Float](dst []T, t *Tensor, i int) {
	blockRows, blockCols := t.Block.Extents(t.Dims())
	codes, scales := t.Row(i), t.ScaleRow(i/blockRows)
	if t.Outer.None() {
		fp8.DecodeBlocks(dst, codes, t.Format, scales, blockCols)
		return
	}
	outer, divide := t.Outer.At(i), t.Outer.Divide
	if wide, ok := any(dst).([]float32); ok && t.productsFit() {
		fp8.DecodeBlocks(wide, codes, t.Format, scales, blockCols)
		underOuter32(wide, outer, divide)
		return
	}
	for j := 0; j < len(dst); j += blockCols {
		end := min(j+blockCols, len(dst))
		decode(dst[j:end], t, codes[j:end], scales[j/blockCols], i)
	}
}

// productsFit reports whether float32 has the products of codes and scales, exactly.
func (t *Tensor) productsFit() bool {
	return t.ScaleFormat == UE4M3Scales && (t.Format == fp8.E2M1 || t.Format == fp8.E4M3)
}

// underOuter32 multiplies or divides exact values by an outer scale.
func underOuter32(values []float32, outer float32, divide bool) {
	level := cpu.Current()
	by := uint32(0)
	if divide {
		by = 1
	}
	for len(values) >= convert.Step && outer > 0 && outer <= math.MaxFloat32 {
		n := min(len(values), jobSize) / convert.Step * convert.Step
		race.Write(values[:n])
		if !convert.ScaleBlocks(level, &values[0], 1, n, &outer, by) {
			break
		}
		values = values[n:]
	}
	for i, p := range values {
		values[i] = outerValue32(float64(p), float64(outer), divide)
	}
}

// decode writes the values of codes of row i, which share a scale.
func decode[T fp8.Float](dst []T, t *Tensor, codes []byte, scale float32, i int) {
	if t.Outer.None() {
		fp8.DecodeScaled(dst, codes, t.Format, scale)
		return
	}
	outer, divide := float64(t.Outer.At(i)), t.Outer.Divide
	var exact [64]float64
	for len(codes) > 0 {
		n := min(len(codes), len(exact))
		fp8.DecodeScaled(exact[:n], codes[:n], t.Format, scale)
		underOuter(dst[:n], exact[:n], outer, divide)
		dst, codes = dst[n:], codes[n:]
	}
}

// underOuter writes exact values times or divided by an outer scale to dst.
func underOuter[T fp8.Float](dst []T, exact []float64, outer float64, divide bool) {
	switch dst := any(dst).(type) {
	case []float32:
		for i, p := range exact {
			dst[i] = outerValue32(p, outer, divide)
		}
	case []float64:
		for i, p := range exact {
			v := p * outer
			if divide {
				v = p / outer
			}
			if v != v {
				v = math.Float64frombits(nanSign(p) | 0x7FF8<<48)
			}
			dst[i] = v
		}
	case []float16.Float16:
		for i, p := range exact {
			dst[i] = float16.Fromfloat32(outerValue32(p, outer, divide))
		}
	case []fp8.BFloat16:
		for i, p := range exact {
			dst[i] = fp8.BFloat16FromFloat32(outerValue32(p, outer, divide))
		}
	}
}

// outerValue32 is outerValue rounded to float32.
func outerValue32(p, outer float64, divide bool) float32 {
	if v := float32(outerValue(p, outer, divide)); v == v {
		return v
	}
	return math.Float32frombits(uint32(nanSign(p)>>32) | 0x7FC00000)
}

// nanSign is the sign bit of a NaN whose sign is kept, that of a code; a NaN that arises
// from p, as of infinity and 0, is positive, since hardware differs in its sign.
func nanSign(p float64) uint64 {
	if p == p {
		return 0
	}
	return math.Float64bits(p) & (1 << 63)
}
