package attention

import (
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/internal/transpose"
)

const (
	panel  = microkernel.PanelWidth
	panels = tile / panel // of a tile's keys
)

var ones = [panel]float32(slices.Repeat([]float32{1}, panel))

// vectors is what one worker multiplies with micro-kernels: rows of queries by the keys of a
// tile, and numerators by its values. Rows come to whole register blocks.
type vectors struct {
	kernels *microkernel.Kernels // nil: plain Go does the work
	task    microkernel.Task

	q, k, v       []float32         // rows, panels of keys K-major, panels of values; or of pairs or quads
	sums          []float32         // of parts of a block of scores, laid out as these
	scalesQ       []float32         // [rows, blocks]
	scalesK       [panels][]float32 // [blocks, panel]
	depth, rows   int               // of a row of q, padded, and whole register blocks of rows
	blocks, whole int               // that share scales, and those of full length
	padded        int               // length of one of those, in whole pairs or quads
	together      int               // values in the place of a float32
	first, last   int               // rows that see keys of the tile, from a whole block on
	unsafe        bool              // values are not all finite

	tableK, tableV *microkernel.BFloat16Table // of kernels with dot products

	codesK [panels][]byte // of panels of keys, where they are read as they lie
	codesV panelSource    // of panels of values, likewise
	codes  codePanels
}

// begin lays out the rows of queries that s has decoded.
func (x *vectors) begin(s *scratch, a *computation) {
	n, dim := len(s.row), a.sizes.Dim
	x.together = 1
	whole := 1
	if x.kernels.Dots != nil {
		x.together, whole = 2, quads
	}
	x.blocks, x.whole = ceilDiv(dim, a.block), dim/a.block
	x.padded = roundUp(a.block, 2*x.together)
	x.depth = x.whole*x.padded + roundUp(dim%a.block, 2*x.together)
	x.beginCodes(s, a, n)
	if x.rows = roundUp(n, x.kernels.MR); x.codes.blocks {
		x.rows = max(x.rows, roundUp(n, microkernel.CodeRows))
	}
	if x.padded > deepest {
		x.sums = grow(x.sums, len(s.p))
	}
	x.q, x.scalesQ = grow(x.q, roundUp(x.rows*x.depth, whole)), grow(x.scalesQ, x.rows*x.blocks)
	clear(x.q)
	clear(x.scalesQ)
	block := a.q.block()
	held := ceilDiv(dim, block)
	for i := range n {
		for b := range x.blocks {
			lo := b * a.block
			hi := min(lo+a.block, dim)
			copy(x.q[i*x.depth+b*x.padded:], s.q[i*dim+lo:i*dim+hi])
			x.scalesQ[i*x.blocks+b] = s.scalesQ[i*held+lo/block]
		}
	}
	x.quadRows(x.q)
}

// load lays out the tile that s has decoded, of n keys.
func (x *vectors) load(s *scratch, a *computation, n int) {
	dim, width := a.sizes.Dim, a.sizes.ValueDim
	x.k = grow(x.k, panels*x.depth*panel)
	block := a.k.block()
	held := ceilDiv(dim, block)
	for i := range panels {
		lo, hi := i*panel, min((i+1)*panel, n)
		if lo >= hi {
			break
		}
		to := x.k[i*x.depth*panel:][:x.depth*panel]
		if x.codesK[i] == nil && (hi-lo < panel || x.depth != dim) {
			clear(to)
		}
		x.scalesK[i] = grow(x.scalesK[i], x.blocks*panel)
		for b := range x.blocks {
			d0 := b * a.block
			d1 := min(d0+a.block, dim)
			if x.codesK[i] == nil {
				transpose.Matrix(to[b*x.padded*panel:], panel, s.k[lo*dim+d0:], dim, hi-lo, d1-d0)
			}
			scales := x.scalesK[i][b*panel:][:panel]
			if held == 1 {
				clear(scales[copy(scales, s.scalesK[lo:hi]):])
				continue
			}
			for j := range scales {
				scales[j] = 0
				if lo+j < hi {
					scales[j] = s.scalesK[(lo+j)*held+d0/block]
				}
			}
		}
		if x.codesK[i] == nil {
			x.pairUp(to)
		}
	}
	x.loadValues(s, width, n)
}

func (x *vectors) loadValues(s *scratch, width, n int) {
	if x.unsafe = false; x.codesV != nil {
		return
	}
	amax, nan := fp8.Amax(s.values[:(n-1)*s.stride+width])
	if x.unsafe = nan || amax > math.MaxFloat32; x.unsafe {
		return
	}
	depth := roundUp(n, 2*x.together)
	x.v = grow(x.v, tile*s.width)
	for d := 0; d < width; d += panel {
		to, cols := x.v[d*tile:][:depth*panel], min(panel, width-d)
		if cols < panel || n < depth {
			clear(to)
		}
		for j := range n {
			copy(to[j*panel:][:cols], s.values[j*s.stride+d:])
		}
		x.pairUp(to)
	}
}

// pairUp makes a panel one of pairs or quads, if that is what it is multiplied as.
func (x *vectors) pairUp(panel []float32) {
	switch k := x.kernels; {
	case k.Dots != nil:
		k.Dots.QuadPanel(&panel[0], len(panel))
	case k.MultiplyPairs != nil:
		k.PairUp(&panel[0], len(panel))
	}
}

// multiply runs the task, for a panel.
func (x *vectors) multiply() {
	if x.kernels.MultiplyPairs != nil {
		x.kernels.MultiplyPairs(&x.task)
	} else {
		x.kernels.Multiply(&x.task)
	}
}

// tile does steps 1 to 6 for the n keys of a tile that are loaded, and the rows from first
// on that see some.
func (x *vectors) tile(s *scratch, a *computation, kvHead, k0, n, first, last int) {
	// So that register blocks from there on end within rows, with codes or without.
	first -= first % x.kernels.MR
	if x.codes.blocks {
		first -= first % (x.kernels.MR * microkernel.CodeRows)
	}
	x.first, x.last = first, last
	x.load(s, a, n)
	x.multiplyKeys(s, n)
	if a.outer {
		x.multiplyOuter(s, a, kvHead, k0)
	}
	s.capScores(a, first, last)
	s.softmax.Unit = x.unitV()
	s.softmax.Update(s.p[first*tile:], s.state[first:last])
	for i := first; i < last; i++ {
		if r := &s.state[i]; r.Kept == 0 {
			clear(s.p[i*tile:][:tile])
		} else if x.unsafe {
			s.weigh(a, i)
		} else if r.Alpha != 1 {
			o := s.o[i*s.width:][:s.width]
			for d := range o {
				o[d] *= r.Alpha
			}
		}
	}
	if !x.unsafe {
		x.multiplyValues(s, kvHead, k0, n)
	}
}

// multiplyKeys writes the scores of the rows that see keys to p.
func (x *vectors) multiplyKeys(s *scratch, n int) {
	mr, nr := x.kernels.MR, x.kernels.NR
	t := &x.task
	*t = microkernel.Task{
		StrideA: 4 * x.depth / x.together, StrideC: 4 * tile, StrideScaleA: 4 * x.blocks,
		RowBlocks: ceilDiv(x.last-x.first, mr),
	}
	for column := 0; column < n; column += nr {
		i, at := column/panel, column%panel
		if x.codesK[i] != nil && x.direct() {
			if at == 0 {
				x.multiplyKeyCodes(s, i)
			}
			continue
		}
		keys := x.k[i*x.depth*panel:]
		if x.codesK[i] != nil { // which lie in the nearest cache then
			if keys = x.k; at == 0 {
				x.decodeKeys(keys[:x.depth*panel], i)
			}
		}
		t.C = &s.p[x.first*tile+column]
		x.multiplyDepth(keys[at:], x.scalesK[i][at:])
	}
}

// deepest is how many values of rows are multiplied at once: so much of a panel lies in the
// nearest cache.
const deepest = 192

// multiplyDepth multiplies rows with a panel of keys for the task, which has C: some blocks
// at once, or a block in parts.
func (x *vectors) multiplyDepth(keys, scales []float32) {
	t := &x.task
	for b := 0; b < x.blocks; b += t.Blocks {
		t.Blocks = 1
		length := x.depth - x.whole*x.padded
		if b < x.whole {
			t.Blocks, length = min(x.whole-b, max(1, deepest/x.padded)), x.padded
		}
		t.ScaleA, t.ScaleB = &x.scalesQ[x.first*x.blocks+b], &scales[b*panel]
		if t.P = nil; length > deepest {
			t.P = &x.sums[0]
		}
		t.Flags = microkernel.First
		for lo := 0; lo < length; lo += deepest {
			at := b*x.padded + lo
			if b == 0 {
				t.Flags |= microkernel.Zero
			}
			if lo+deepest >= length {
				t.Flags |= microkernel.Last
			}
			t.Pairs = min(deepest, length-lo) / (2 * x.together)
			t.A, t.B = &x.q[(x.first*x.depth+at)/x.together], &keys[at*panel/x.together]
			x.multiply()
			t.Flags = 0
		}
	}
}

// multiplyOuter multiplies scores with the outer scales, for keys from k0 on.
func (x *vectors) multiplyOuter(s *scratch, a *computation, kvHead, k0 int) {
	for i := x.first; i < x.last; i++ {
		r, scores := &s.row[i], s.p[i*tile:][:tile]
		for j := r.from; j < r.to; j++ {
			scores[j] = a.alpha(scores[j], kvHead, s.firstRow+i, k0+j)
		}
	}
}

// multiplyValues adds the tile's values times P to O.
func (x *vectors) multiplyValues(s *scratch, kvHead, k0, n int) {
	mr, nr := x.kernels.MR, x.kernels.NR
	if x.codesV != nil && x.codes.blocks {
		mr = microkernel.CodeRows
	}
	rows := roundUp(x.last-x.first, mr)
	clear(s.p[x.last*tile : (x.first+rows)*tile])
	x.quadRows(s.p[x.first*tile : (x.first+rows)*tile])
	t := &x.task
	*t = microkernel.Task{
		StrideA: 4 * tile / x.together, StrideC: 4 * s.width,
		RowBlocks: rows / mr, Blocks: 1, Pairs: ceilDiv(n, 2*x.together),
		Flags: microkernel.First | microkernel.Last,
		A:     &s.p[x.first*tile], ScaleA: &ones[0], ScaleB: &ones[0],
	}
	if x.kernels.Dots != nil {
		t.ScaleA = &dotsScale
	}
	if x.codesV != nil {
		x.multiplyValueCodes(s, kvHead, k0, n)
		return
	}
	for column := 0; column < s.width; column += nr {
		t.B, t.C = &x.v[column/panel*panel*tile+column%panel], &s.o[x.first*s.width+column]
		x.multiply()
	}
}
