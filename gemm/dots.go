package gemm

import (
	"unsafe"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// quadDepth is how many k of a row dot products take at once.
const quadDepth = 4

// useDots is [microkernel.UseDots] but in tests.
var useDots = microkernel.UseDots

// dots returns the micro-kernels with dot products of bfloat16 if the product is one for them
// and the level in use is theirs, or AMX, which does not suit it; where their level was named,
// they need not be faster. A sum is a multiple of the
// product of both formats' smallest values, so that none is a denormal, which the instruction
// takes for zero. Of a row or a few, codes are better decoded in the kernel.
func (p *product) dots(level cpu.Level, named bool) *microkernel.Kernels {
	a, b := microkernel.BFloat16TableOf(p.a.format), microkernel.BFloat16TableOf(p.b.format)
	if level < cpu.AVX512BF16 || a == nil || b == nil || a.Least < 0x1p-126/b.Least {
		return nil
	}
	named = named && level == cpu.AVX512BF16
	if !named && (p.m < dotsFrom.rows || min(p.block, p.k) < dotsFrom.block) {
		return nil
	}
	return useDots(named)
}

// dotsFrom is from where on dot products of bfloat16 pay, unless their level was named: from so
// many rows of A, fewer than which are a kernel's that decodes codes of B as it goes, and
// from so many k between two scales. Estimated: a block of 16 is two instructions for each
// result and chain, and five more.
var dotsFrom = struct{ rows, block int }{rows: 5, block: 16}

// halves are the halves of values: bfloat16.
func halves(values []float32) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(values))), 2*len(values))
}

// packDotRows packs the codes of some rows, a stride apart, for a step, to rows of dst. Blocks
// are padded with zeros to quads.
func (s *scratch) packDotRows(dst []uint16, dstStride int, codes []byte, stride, rows int, f fp8.Format, st step) {
	n, padded := st.length(quadDepth)
	blocks, table := st.blocks, microkernel.BFloat16TableOf(f)
	if n == padded {
		n, padded, blocks = n*blocks, n*blocks, 1
	}
	whole := n &^ (quadDepth - 1)
	for b := range blocks {
		to, from := dst[b*padded:], codes[b*n:]
		for i := 0; i < rows && whole > 0; i += rowsAtOnce {
			s.dots.PackRows(&to[i*dstStride], 2*dstStride, &from[i*stride], stride, min(rowsAtOnce, rows-i), whole, table)
		}
		for i := range rows {
			if whole < n {
				clear(s.last[copy(s.last[:quadDepth], from[i*stride+whole:][:n-whole]):quadDepth])
				s.dots.PackRows(&to[i*dstStride+whole], 0, &s.last[0], 0, 1, quadDepth, table)
			}
		}
	}
}

// packDotArea packs rows [i0, i1) of A for a step, and adds zeros for what is missing of the
// given number of rows.
func (s *scratch) packDotArea(p *part, i0, i1, rows int, st step) {
	_, padded := st.length(quadDepth)
	stride := padded * st.blocks
	s.a = grow(s.a, rows*stride/2)
	dst := halves(s.a)
	s.packDotRows(dst, stride, p.a.codes[i0*p.a.stride+st.lo:], p.a.stride, i1-i0, p.a.format, st)
	clear(dst[(i1-i0)*stride:])
}

// packDotPanel packs the codes of a panel, K-major, for a step to b. Blocks are padded with
// zeros to quads.
func (s *scratch) packDotPanel(b []float32, codes []byte, f fp8.Format, st step) {
	const width = microkernel.PanelWidth
	n, padded := st.length(quadDepth)
	blocks, table := st.blocks, microkernel.BFloat16TableOf(f)
	if n == padded {
		n, padded, blocks = n*blocks, n*blocks, 1
	}
	dst, whole := halves(b), n&^(quadDepth-1)
	for b := range blocks {
		to, from := dst[b*padded*width:], codes[b*n*width:]
		if whole > 0 {
			s.dots.PackPanel(&to[0], &from[0], whole, table)
		}
		if whole < n {
			clear(s.last[copy(s.last[:], from[whole*width:n*width]):])
			s.dots.PackPanel(&to[whole*width], &s.last[0], quadDepth, table)
		}
	}
}
