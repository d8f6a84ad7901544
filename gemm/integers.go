package gemm

import (
	"math"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/integer"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// integerBackend computes with the integer kernels of a level, of formats whose values are
// small multiples of a step. B is brought into panels of integers, and rows of A
// into integers, once for each step of an area.
type integerBackend struct{ *integer.Kernels }

// integerDepth is how much of K is done at once, at most: a panel of as much takes 32 KiB,
// which is in the nearest cache beside some rows of A.
const integerDepth = 512

// outerRows is how many rows of results are multiplied by outer scales at a time: rows of C
// are often powers of two apart, and more of them than this would not stay in a cache.
const outerRows = 96

// integerRows is how many rows an area has at most: with the panel, 12 million
// multiplications, which are one call of a kernel.
const integerRows = 384

func (integerBackend) blocking() blocking {
	return blocking{mc: integerRows, nc: 1024, minNC: 512, mcStep: 48}
}

// integers returns the integer kernels for the product, or nil if there are none that may
// compute it, or that pay: packed weights are cut at octets, so that blocks must be, and
// plain Go needs twice the time of sums in float32.
func (p *product) integers(l cpu.Level) *integer.Kernels {
	a, b := &stepsOf[p.a.format], &stepsOf[p.b.format]
	if a.largest == 0 || b.largest == 0 || p.k == 0 {
		return nil
	}
	block := min(p.block, p.k)
	whole := block%integer.Octet == 0 || block == p.k
	if !whole || block > exactSteps/(a.largest*b.largest) {
		return nil
	}
	k := integer.For(l)
	if k == nil || k.Plain() || a.largest*b.inPanel(k) > k.Largest {
		return nil
	}
	return k
}

// longest is how much of a block one call may sum up: a multiple of a chunk.
func (p *product) longest() int {
	most := integer.Limit / (stepsOf[p.a.format].largest * stepsOf[p.b.format].largest)
	return most / canonical.Chunk * canonical.Chunk
}

func (b integerBackend) compute(s *scratch, p *part, r area, out *result) {
	k := b.Kernels
	if p.m == 1 && p.b.layout == nibbles && k.MultiplyNibbles != nil {
		s.computeNibbles(k, p, r, out)
		return
	}
	rows := roundUp(r.i1-r.i0, k.MR)
	depth := min(integerDepth, p.longest())
	s.c = grow(s.c, rows*roundUp(r.j1-r.j0, microkernel.PanelWidth))
	if p.block > depth {
		s.p = grow(s.p, len(s.c))
	}
	written := area{}
	if out.bare() {
		written = r.direct(k.MR)
	}
	for lo := 0; lo < p.k; {
		st := p.step(lo, depth)
		s.describeIntegers(k, p, st)
		s.packIntegers(k, p, r, rows, st)
		for j := r.j0; j < r.j1; j += microkernel.PanelWidth {
			j1 := min(j+microkernel.PanelWidth, r.j1)
			s.gatherPanelScales(p, j, j1, st)
			s.packIntegerPanel(k, p, j, j1, st)
			to := []float32(nil)
			if st.hi == p.k && j < written.j1 {
				to = out.float32s[p.at+r.i0*p.n+j:]
			}
			s.multiplyIntegers(k, p, r, rows, written, j, to)
		}
		lo = st.hi
	}
	s.storePanels(p, rows, r, written, out)
}

// describeIntegers tells the task of everything that all of a step shares.
func (s *scratch) describeIntegers(k *integer.Kernels, p *part, st step) {
	n, _ := st.length(1)
	quads := roundUp(n, integer.Octet) / integer.Quad
	a, b := &stepsOf[p.a.format], &stepsOf[p.b.format]
	s.integers = integer.Task{
		Blocks: st.blocks, Quads: quads,
		Run:   math.MaxInt16 / (2 * a.largest * b.inPanel(k)),
		Magic: integer.Magic(a.exponent + b.exponent),
		Flags: p.flags(st),
	}
	if st.lo < p.block && st.last {
		s.integers.Flags |= integer.Zero
	}
}

// packIntegers writes rows of A as integers, and zeros for what is missing of the given
// number, with what their sums begin from and their scales.
func (s *scratch) packIntegers(k *integer.Kernels, p *part, r area, rows int, st step) {
	const line = 64
	t, table := &s.integers, stepsOf[p.a.format].signed
	_, bias := stepsOf[p.b.format].panel(k)
	n, used := st.hi-st.lo, t.Blocks*t.Quads*integer.Quad
	t.StrideA = roundUp(used, line) + line // so that rows do not all need the same places of the cache
	t.StrideScaleA = 4 * rows
	s.ints = grow(s.ints, rows*t.StrideA)
	s.starts = grow(s.starts, t.Blocks*rows)
	for i := range rows {
		row := s.ints[i*t.StrideA:][:used]
		if i >= r.i1-r.i0 {
			clear(row)
		} else {
			table.Lookup(asBytes(row), p.a.codes[(r.i0+i)*p.a.stride+st.lo:][:n])
			clear(row[n:])
		}
	}
	start := int32(math.Float32bits(t.Magic))
	integer.Starts(s.starts, s.ints, t.StrideA, rows, t.Blocks, t.Quads*integer.Quad, start, int32(bias))
	s.scalesA = grow(s.scalesA, t.Blocks*rows)
	p.a.scales.across(s.scalesA, rows, r.i0, r.i1, st.lo, p.block)
}

func asBytes(s []int8) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// packIntegerPanel writes columns [j0, j1) of B as a panel of integers.
func (s *scratch) packIntegerPanel(k *integer.Kernels, p *part, j0, j1 int, st step) {
	t := &s.integers
	table, _ := stepsOf[p.b.format].panel(k)
	depth := t.Blocks * t.Quads * integer.Quad
	s.panel = grow(s.panel, depth*microkernel.PanelWidth)
	from := s.panel
	switch p.b.layout {
	case kMajor:
		integer.PackQuads(s.panel, p.b.codes[j0*p.b.stride+st.lo:], p.b.stride, j1-j0, st.hi-st.lo)
	case quads:
		from = p.b.panelPart(j0, st.lo, depth)
	case nibbles:
		integer.SplitNibbles(s.panel, p.b.panelPart(j0, st.lo, depth))
	}
	table.Lookup(s.panel, from)
}

// multiplyIntegers multiplies the area's rows of A, padded to so many, with the panel of
// column j. The results of rows that are written go to out, if that is not nil, and what
// has outer scales is multiplied by them while it is near.
func (s *scratch) multiplyIntegers(k *integer.Kernels, p *part, r area, rows int, written area, j int, out []float32) {
	c, direct := (j-r.j0)*rows, 0
	if out != nil {
		direct = written.i1 - written.i0
	}
	piece := max(direct, 1)
	if p.outer() {
		piece = outerRows
	}
	for lo := 0; lo < direct; lo += piece {
		hi := min(lo+piece, direct)
		s.multiplyIntegerRows(k, lo, hi, c, rows, out, p.n)
		if p.outer() {
			s.multiplyPanelOuter(p, area{r.i0 + lo, r.i0 + hi, j, j + microkernel.PanelWidth}, out[lo*p.n:])
		}
	}
	s.multiplyIntegerRows(k, direct, rows, c, rows, nil, 0)
}

func (s *scratch) multiplyIntegerRows(k *integer.Kernels, lo, hi, c, rows int, out []float32, stride int) {
	if lo == hi {
		return
	}
	t := s.integers
	t.A, t.B = &s.ints[lo*t.StrideA], &s.panel[0]
	t.Start, t.ScaleA, t.ScaleB = &s.starts[lo], &s.scalesA[lo], &s.scalesB[0]
	t.C = &s.c[c+lo*microkernel.PanelWidth]
	if t.Flags&(integer.First|integer.Last) != integer.First|integer.Last {
		t.P = &s.p[c+lo*microkernel.PanelWidth]
	}
	if out != nil {
		t.Out, t.StrideOut = &out[lo*stride], 4*stride
	}
	t.RowBlocks = (hi - lo) / k.MR
	s.call = t
	k.Multiply(&s.call)
}
