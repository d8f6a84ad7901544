package gemm

import (
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/amx"
	"github.com/octavo-fp8/octavo/internal/integer"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// scratch is what one worker works with, reused from call to call.
type scratch struct {
	task             microkernel.Task
	dots             *microkernel.Dots                        // or nil: a and b are float32, not bfloat16
	last             [quadDepth * microkernel.PanelWidth]byte // codes of a quad that the block ends in
	view             microkernel.Float16View                  // of A
	a, b             []float32                                // decoded
	codes            []byte                                   // of B, transposed
	c, p             []float32                                // results, and sums of a block that is not over
	scalesA, scalesB []float32

	// For integers.
	integers, call integer.Task
	ints           []int8
	starts         []int32
	panel          []byte
	outerA         []float32 // outer scales of rows, and of a panel's columns
	outerB         [microkernel.PanelWidth]float32

	// For tiles. Packs and sums are best aligned to cache lines, as the allocator
	// aligns slices of their size.
	packA, packB []uint16
	sums         []amx.Sums // of a block that is not over
	row          []float32
	within       amx.Scratch
}

var pool = sync.Pool{New: func() any { return new(scratch) }}

// drop gives s back, without what it refers to of operands.
func (s *scratch) drop() {
	s.task, s.dots, s.integers, s.call = microkernel.Task{}, nil, integer.Task{}, integer.Task{}
	pool.Put(s)
}

// grow returns a slice of n elements, buf's memory if there is enough.
func grow[T any](buf []T, n int) []T { return slices.Grow(buf[:0], n)[:n] }

// step is a stretch of K that is decoded at once: some blocks, or some of a block
// that is too long for that or is the last and shorter one.
type step struct {
	lo, hi int
	blocks int
	first  bool // a block starts at lo
	last   bool // a block ends at hi
}

// step returns the step that starts at k and is about as long as depth, a
// multiple of canonical.Chunk.
func (p *product) step(k, depth int) step {
	inBlock := k % p.block
	if left := min(p.block-inBlock, p.k-k); left < p.block || left > depth {
		n := min(left, depth)
		return step{k, k + n, 1, inBlock == 0, n == left}
	}
	blocks := min(depth, p.k-k) / p.block
	return step{k, k + blocks*p.block, blocks, true, true}
}

// piece returns the part of a step that starts at k and is about as long as depth.
func (p *product) piece(of step, k, depth int) step { return p.step(k, min(depth, of.hi-k)) }

// length returns the length of each of the step's blocks, and of what they are
// padded to: a multiple of as many k as kernels take at once.
func (st step) length(atOnce int) (n, padded int) {
	n = (st.hi - st.lo) / st.blocks
	return n, roundUp(n, atOnce)
}

// atOnce is how many k kernels take at once: a pair, or a quad of bfloat16.
func (s *scratch) atOnce() int {
	if s.dots != nil {
		return quadDepth
	}
	return pairDepth
}

const pairDepth = 2

// decodeRows decodes rows [i0, i1) of A, times unit, for a step, and adds zeros
// for what is missing of the given number of rows.
func (s *scratch) decodeRows(p *part, i0, i1, rows int, st step) {
	n, padded := st.length(pairDepth)
	stride := padded * st.blocks
	unit := float16Views[p.b.format].unit
	s.a = grow(s.a, rows*stride)
	for i := i0; i < i1; i++ {
		row, codes := s.a[(i-i0)*stride:][:stride], p.a.codes[i*p.a.stride+st.lo:][:st.hi-st.lo]
		if n == padded {
			fp8.DecodeScaled(row, codes, p.a.format, unit)
			continue
		}
		for b := range st.blocks {
			fp8.DecodeScaled(row[b*padded:], codes[b*n:(b+1)*n], p.a.format, unit)
			row[b*padded+n] = 0
		}
	}
	clear(s.a[(i1-i0)*stride:])
}

// gatherScales lists the scales of rows [i0, i1) of A, row by row, for a step.
func (s *scratch) gatherScales(p *part, i0, i1, rows int, st step) {
	s.scalesA = grow(s.scalesA, rows*st.blocks)
	for i := i0; i < i1; i++ {
		p.a.scales.along(s.scalesA[(i-i0)*st.blocks:][:st.blocks], i, st.lo, p.block)
	}
	clear(s.scalesA[(i1-i0)*st.blocks:])
}

// gatherPanelScales lists the scales of a panel of B, block by block.
func (s *scratch) gatherPanelScales(p *part, j0, j1 int, st step) {
	s.scalesB = grow(s.scalesB, st.blocks*microkernel.PanelWidth)
	if p.b.bytes.codes != nil {
		p.b.bytes.panel(s.scalesB, j0/microkernel.PanelWidth, st.lo, p.block, p.b.scales.cols)
		return
	}
	p.b.scales.across(s.scalesB, microkernel.PanelWidth, j0, j1, st.lo, p.block)
}
