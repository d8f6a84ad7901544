// Package hadamard multiplies groups of 16 float32 by the Hadamard matrix of order 16,
// H[i][j] = (-1)^popcount(i&j).
//
// Each of a group's values is multiplied by a factor. Then, with the distance d being 8,
// 4, 2 and 1 in turn, each pair of values a and b, d apart, of which a has bit d of its
// index clear, becomes a+b and a-b. Last each is multiplied by another factor. Every
// operation rounds to float32, and a result that is NaN is the canonical one, 7FC00000.
// This is the one order of the sums: it gives the same bits at every level.
package hadamard

import (
	"math"

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

// job is what a kernel must know besides. Its layout is known to the assembly.
type job struct {
	Factors
	signs [4][Size]float32 // of distances 8, 4, 2 and 1: -1 where the index has that bit
	nan   uint32
}

func newJob(f *Factors) *job {
	j := &job{Factors: *f, signs: signs, nan: canonicalNaN}
	return j
}

var signs = func() (s [4][Size]float32) {
	for step := range s {
		for i := range s[step] {
			s[step][i] = 1
			if i&(8>>step) != 0 {
				s[step][i] = -1
			}
		}
	}
	return s
}()

const canonicalNaN = 0x7FC00000

// rowsFunc transforms n groups of neighbours, columnsFunc n columns of 16 rows, strides
// being in bytes. n is above 0 and a multiple of width. dst may be src.
type (
	rowsFunc    func(dst, src *float32, n int, j *job)
	columnsFunc func(dst, src *float32, dstStride, srcStride, n int, j *job)

	columnsKernel struct {
		columns columnsFunc
		width   int
	}
)

// longest is the number of groups that a kernel is given at a time: it cannot be
// interrupted.
const longest = 1 << 10

// Rows transforms each 16 neighbours of src, whose length is a multiple of 16, to dst,
// which may be src.
func Rows(dst, src []float32, f *Factors) {
	n := len(src) / Size
	if len(dst) < len(src) || len(src)%Size != 0 {
		panic(short)
	}
	dst = dst[:len(src)]
	race.Read(src)
	race.Write(dst)
	kernel, ok := rows.For(cpu.Current())
	if !ok {
		for i := range n {
			group(dst[i*Size:], src[i*Size:], 1, 1, f)
		}
		return
	}
	j := kernels.NoEscape(newJob(f))
	for n > 0 {
		now := min(n, longest)
		kernel(kernels.NoEscape(&dst[0]), kernels.NoEscape(&src[0]), now, j)
		dst, src, n = dst[now*Size:], src[now*Size:], n-now
	}
}

// Columns transforms each of the columns of src, 16 rows that are srcStride apart, to dst,
// whose rows are dstStride apart and which may be src.
func Columns(dst []float32, dstStride int, src []float32, srcStride, cols int, f *Factors) {
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
	if kernel, ok := columns.For(cpu.Current()); ok {
		j := kernels.NoEscape(newJob(f))
		for done < cols-cols%kernel.width {
			now := min(cols-cols%kernel.width-done, longest)
			kernel.columns(kernels.NoEscape(&dst[done]), kernels.NoEscape(&src[done]), 4*dstStride, 4*srcStride, now, j)
			done += now
		}
	}
	for ; done < cols; done++ {
		group(dst[done:], src[done:], dstStride, srcStride, f)
	}
}

// group transforms a group whose values are so far apart.
func group(dst, src []float32, dstStride, srcStride int, f *Factors) {
	var x [Size]float32
	for i := range x {
		x[i] = float32(src[i*srcStride] * f.Before[i])
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
		dst[i*dstStride] = v
	}
}
