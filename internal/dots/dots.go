// Package dots multiplies rows by columns in float64, for operands whose sums of
// products are exact there: then neither the order of additions nor whether they are
// fused with multiplications changes a bit.
package dots

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/race"
)

const (
	// Columns are those of a panel: element k of all columns, one after the other, and
	// then element k+1.
	Columns = 16
	// Group is how many rows go together: their number is a multiple of it.
	Group = 8
)

// kernel computes the sums of rows, a multiple of Group. Strides are in bytes.
type kernel func(sums *float64, sumsStride int, x *float64, stride int, panel *float64, n, rows int)

const short = "dots: an operand is shorter than its shape says, or rows are not in groups"

// Multiply writes the sum of products x[i*stride+k]·panel[k*Columns+j], for all k below
// n, to sums[i*sumsStride+j], for rows i below rows, a multiple of Group, and all
// columns j. It panics if an operand is too short; sums must not overlap the others.
func Multiply(sums []float64, sumsStride int, x []float64, stride int, panel []float64, n, rows int) {
	if rows <= 0 {
		return
	}
	if rows%Group != 0 || n < 0 || len(sums) < (rows-1)*sumsStride+Columns ||
		len(x) < (rows-1)*stride+n || len(panel) < n*Columns {
		panic(short)
	}
	f, ok := multiply.For(cpu.Current())
	if !ok || n == 0 {
		generic(sums, sumsStride, x, stride, panel, n, rows)
		return
	}
	note(sums, sumsStride, x, stride, panel, n, rows)
	f(kernels.NoEscape(&sums[0]), 8*sumsStride, kernels.NoEscape(&x[0]), 8*stride, kernels.NoEscape(&panel[0]), n, rows)
}

// note tells the race detector what kernels touch.
func note(sums []float64, sumsStride int, x []float64, stride int, panel []float64, n, rows int) {
	if !race.Enabled {
		return
	}
	race.Read(panel[:n*Columns])
	for i := range rows {
		race.Read(x[i*stride:][:n])
		race.Write(sums[i*sumsStride:][:Columns])
	}
}

// generic has four columns in registers.
func generic(sums []float64, sumsStride int, x []float64, stride int, panel []float64, n, rows int) {
	const four = 4
	for i := range rows {
		row := x[i*stride:][:n]
		for j := 0; j < Columns; j += four {
			var s0, s1, s2, s3 float64
			at := j
			for _, v := range row {
				y := panel[at : at+four : at+four]
				s0 += v * y[0]
				s1 += v * y[1]
				s2 += v * y[2]
				s3 += v * y[3]
				at += Columns
			}
			to := sums[i*sumsStride+j:][:four]
			to[0], to[1], to[2], to[3] = s0, s1, s2, s3
		}
	}
}
