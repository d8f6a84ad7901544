// Package hadamard multiplies groups of 16 values, float32 or BFloat16, by the Hadamard
// matrix of order 16, H[i][j] = (-1)^popcount(i&j).
//
// Each of a group's values is multiplied by a factor. Then, with the distance d being 8,
// 4, 2 and 1 in turn, each pair of values a and b, d apart, of which a has bit d of its
// index clear, becomes a+b and a-b. Last each is multiplied by another factor. Every
// operation rounds to float32, and a result that is NaN is the canonical one, 7FC00000.
// This is the one order of the sums: it gives the same bits at every level. Results of
// BFloat16, of which the bits are a uint16, are rounded once more, to nearest even.
package hadamard

import (
	"math"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/race"
)

// Size is the number of values in a group.
const Size = 16

// Factors are what a group's values are multiplied by. Its layout is known to the
// assembly.
type Factors struct {
	Before, After [Size]float32
}

const short = "hadamard: a matrix is shorter than its shape says"

// Element is float32, or BFloat16 by its bits.
type Element interface{ float32 | uint16 }

// job is what a kernel must know. Its layout is known to the assembly.
type job struct {
	Factors
	signs      [4][Size]float32 // of distances 8, 4, 2 and 1: -1 where the index has that bit
	nan        uint32
	one, below uint32 // 1 and 0x7FFF, for rounding to BFloat16
}

var template = func() (j job) {
	for step := range j.signs {
		for i := range Size {
			j.signs[step][i] = 1
			if i&(8>>step) != 0 {
				j.signs[step][i] = -1
			}
		}
	}
	j.nan, j.one, j.below = canonicalNaN, 1, 0x7FFF
	return j
}()

const canonicalNaN = 0x7FC00000

// rowsFunc transforms n groups of neighbours, columnsFunc n columns of 16 rows, strides
// being in bytes. n is above 0 and a multiple of width. dst may be src.
type (
	rowsFunc[T Element]    func(dst, src *T, n int, j *job)
	columnsFunc[T Element] func(dst, src *T, dstStride, srcStride, n int, j *job)

	columnsKernel[T Element] struct {
		columns columnsFunc[T]
		width   int
	}
)

// rowsOf and columnsOf return the kernels of a type, at the level in use.
func rowsOf[T Element]() (rowsFunc[T], bool) {
	var operation any = rows
	if size[T]() == 2 {
		operation = rowsBF16
	}
	return operation.(*kernels.Operation[rowsFunc[T]]).For(cpu.Current())
}

func columnsOf[T Element]() (columnsKernel[T], bool) {
	var operation any = columns
	if size[T]() == 2 {
		operation = columnsBF16
	}
	return operation.(*kernels.Operation[columnsKernel[T]]).For(cpu.Current())
}

// size returns that of an element in bytes.
func size[T Element]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// longest is the number of groups that a kernel is given at a time: it cannot be
// interrupted.
const longest = 1 << 10

// Rows transforms each 16 neighbours of src, whose length is a multiple of 16, to dst,
// which may be src.
func Rows[T Element](dst, src []T, f *Factors) {
	n := len(src) / Size
	if len(dst) < len(src) || len(src)%Size != 0 {
		panic(short)
	}
	dst = dst[:len(src)]
	race.Read(src)
	race.Write(dst)
	kernel, ok := rowsOf[T]()
	if !ok {
		for i := range n {
			group(dst[i*Size:], src[i*Size:], 1, 1, f)
		}
		return
	}
	own := template
	own.Factors = *f
	j := kernels.NoEscape(&own)
	for n > 0 {
		now := min(n, longest)
		kernel(kernels.NoEscape(&dst[0]), kernels.NoEscape(&src[0]), now, j)
		dst, src, n = dst[now*Size:], src[now*Size:], n-now
	}
}

// Columns transforms each of the columns of src, 16 rows that are srcStride apart, to dst,
// whose rows are dstStride apart and which may be src.
func Columns[T Element](dst []T, dstStride int, src []T, srcStride, cols int, f *Factors) {
	if cols <= 0 {
		return
	}
	if dstStride < 0 || srcStride < 0 || len(dst) < (Size-1)*dstStride+cols || len(src) < (Size-1)*srcStride+cols {
		panic(short)
	}
	if race.Enabled {
		for i := range Size {
			race.Read(src[i*srcStride:][:cols])
			race.Write(dst[i*dstStride:][:cols])
		}
	}
	done := 0
	if kernel, ok := columnsOf[T](); ok {
		own := template
		own.Factors = *f
		j, bytes := kernels.NoEscape(&own), size[T]()
		for whole := cols - cols%kernel.width; done < whole; {
			now := min(whole-done, longest)
			kernel.columns(kernels.NoEscape(&dst[done]), kernels.NoEscape(&src[done]), bytes*dstStride, bytes*srcStride, now, j)
			done += now
		}
	}
	for ; done < cols; done++ {
		group(dst[done:], src[done:], dstStride, srcStride, f)
	}
}

// group transforms a group whose values are so far apart.
func group[T Element](dst, src []T, dstStride, srcStride int, f *Factors) {
	var x [Size]float32
	for i := range x {
		x[i] = float32(widened(src[i*srcStride]) * f.Before[i])
	}
	for d := Size / 2; d > 0; d /= 2 {
		for i := range x {
			if i&d == 0 {
				x[i], x[i+d] = x[i]+x[i+d], x[i]-x[i+d]
			}
		}
	}
	for i, v := range x {
		v *= f.After[i]
		if v != v {
			v = math.Float32frombits(canonicalNaN)
		}
		dst[i*dstStride] = narrowed[T](v)
	}
}

func widened[T Element](x T) float32 {
	if size[T]() == 2 {
		return math.Float32frombits(uint32(x) << 16)
	}
	return float32(x)
}

// narrowed rounds x, which is no NaN but the canonical one.
func narrowed[T Element](x float32) T {
	if size[T]() == 2 {
		b := math.Float32bits(x)
		return T((b + 0x7FFF + b>>16&1) >> 16)
	}
	return T(x)
}
