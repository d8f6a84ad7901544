package attention

import (
	"math"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// An instruction for dot products of bfloat16 does two steps of the canonical order, of k and of
// k+2, each fused and rounded: along the elements of Q and K, in chunks of 32 from each block's
// start, and along the keys of P and V, in chunks of 32 from the tile's. But denormals, operands
// and sums, are zeros to it. So products must be multiples of a normal power of two; then sums
// are.
//
//   - Values of K are multiples of their format's least, and those of Q are looked at.
//   - P is a multiple of 2^-133 and V of 2^-16, products of 2^-149. P is multiplied with dotsUnit,
//     and sums with its inverse, which changes no bit: where sums are denormal they are exact,
//     with it and without. None overflows, since P is 2^15 at most and V below 2^16.

// quadDepth is how many k of a row dot products take at once, and quads those of all columns of
// a panel: kernels take whole ones.
const (
	quadDepth = 4
	quads     = quadDepth * panel
)

const dotsUnit = 1 << 24

var dotsScale float32 = 1. / dotsUnit

// dotsFor returns the micro-kernels with dot products of bfloat16 for so many rows of queries, or
// nil, but in tests: if the level in use is theirs, or AMX; where their level was named, they need
// be neither faster nor be for many rows.
var dotsFor = func(rows int) *microkernel.Kernels {
	level := cpu.Current()
	named := cpu.Named() && level == cpu.AVX512BF16
	if level < cpu.AVX512BF16 || !named && rows < dotsFrom {
		return nil
	}
	return microkernel.UseDots(named)
}

// dotsFrom is from how many rows on dot products pay, unless their level was named: fewer are one
// register block that multiplies codes as they lie. Estimated.
const dotsFrom = 5

// choose returns the micro-kernels for n rows of queries, q, or nil.
func (x *vectors) choose(q []float32, a *computation, n int) *microkernel.Kernels {
	floats := microkernel.For(cpu.Current())
	d := dotsFor(n)
	k, codes := a.k.format()
	if d == nil || !codes || !a.exactPV {
		return floats
	}
	v, _ := a.v.format()
	if x.tableK, x.tableV = microkernel.BFloat16TableOf(k), microkernel.BFloat16TableOf(v); x.tableK == nil || x.tableV == nil {
		return floats
	}
	least := 0x1p-119 / x.tableK.Least // a bfloat16 is a multiple of 2^-7 of its power of two
	for _, y := range q[:n*a.sizes.Dim] {
		if math.Float32bits(y)&0xFFFF != 0 || y != 0 && y < least && -y < least {
			return floats
		}
	}
	return d
}

// quadRows makes quads of rows, in place, if that is what they are multiplied as.
func (x *vectors) quadRows(rows []float32) {
	if x.kernels.Dots != nil && len(rows) > 0 {
		x.kernels.Dots.QuadRows(&rows[0], len(rows))
	}
}

// packQuads writes the values of a panel's codes as quads to the memory of so many float32s. Where
// the last is half a quad, which keys' panels end with at least, zeros are added.
func (x *vectors) packQuads(to []float32, codes []byte, t *microkernel.BFloat16Table) {
	dst := unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(to))), len(to))
	whole := min(len(codes), len(to)) / quads * quads
	if whole > 0 {
		x.kernels.Dots.PackPanel(&dst[0], &codes[0], whole/panel, t)
	}
	if last := &x.codes.last; whole < len(to) {
		copy(last[:quads/2], codes[whole:])
		x.kernels.Dots.PackPanel(&dst[whole], &last[0], quadDepth, t)
	}
}
