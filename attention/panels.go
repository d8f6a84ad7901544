package attention

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// panelSource is a source that has panels of codes as micro-kernels read them.
type panelSource interface {
	source

	// panel returns a panel of the tile that begins at a key: of K, panel keys from one on,
	// K-major; of V, all keys of the tile and panel columns from one on. It is nil where a
	// code of it may be NaN or infinite.
	panel(head, key, column int) []byte
}

// codePanels is what is known of codes that are read as they lie: as float16s, whose values
// are those of the codes divided by a unit. Rows of A are multiplied with that.
type codePanels struct {
	k, v         panelSource // or nil
	viewK, viewV codeView
	rowQ         bool   // there is one row of queries, whose values are float16s
	one          bool   // there is one row
	blocks       bool   // codes are multiplied in register blocks, as MultiplyCodeBlocks does
	values, next []byte // the first panels of the tile's values and the next tile's keys, or nil
	buffer       []float32
	last         [quads]byte // half a quad of a panel, and zeros
}

// codeView is how codes of a format are read as float16s: see [microkernel.Float16View].
type codeView struct {
	factor, mask uint64
	unit, whole  float32 // whole is that of a task
}

func viewOf(f fp8.Format) codeView {
	if f == fp8.E5M2 {
		return codeView{0x0100_0100_0100_0100, 0xFFFF_FFFF_FFFF_FFFF, 1, 1}
	}
	return codeView{0x0080_0080_0080_0080, 0xBFFF_BFFF_BFFF_BFFF, 1 << 8, 1}
}

// inBlocks makes a view that of MultiplyCodeBlocks. Values times its unit must be numbers: those
// of 8 bits are below 2^17, and their sums stay far above denormals, so that 2^-16 of each has
// the same bits. Others are taken whole, for which they must be below 2^8.
func (v *codeView) inBlocks(eightBits bool) {
	if v.whole = 1; eightBits {
		v.whole = 1 << 16
	}
	v.unit *= 0x1p112 / v.whole
}

// largestQuery is what rows of bfloat16 may have to be multiplied with a unit.
const largestQuery = math.MaxFloat32 / (1 << 16)

// mostCoded is how many rows multiply codes at most: more repay decoding them to memory.
const mostCoded = 2 * microkernel.CodeRows

// beginCodes decides whether panels of codes are used, and multiplies n rows of queries
// with their unit, in s, where they are.
func (x *vectors) beginCodes(s *scratch, a *computation, n int) {
	x.codesK, x.codesV = [panels][]byte{}, nil
	c := &x.codes
	c.k, c.v, c.one, c.rowQ, c.blocks = nil, nil, n == 1, false, false
	if x.kernels.Dots != nil {
		if c.v, _ = a.v.(panelSource); x.blocks == 1 {
			c.k, _ = a.k.(panelSource)
		}
		c.viewK.unit = 1
		return
	}
	if x.kernels.MultiplyCodes == nil || x.kernels.DecodeFloat16 == nil {
		return
	}
	q := s.q[:n*a.sizes.Dim]
	amax, nan := fp8.Amax(q)
	_, codes := a.q.format()
	c.blocks = n >= microkernel.CodeRows && n <= mostCoded && x.kernels.MultiplyCodeBlocks != nil && microkernel.FastDenormals() &&
		(codes || amax < 1<<8)
	if v, ok := a.v.(panelSource); ok {
		f, _ := v.format()
		if c.v, c.viewV = v, viewOf(f); c.blocks {
			c.viewV.inBlocks(s.softmax.Lattice != nil)
		}
	}
	k, ok := a.k.(panelSource)
	if !ok || x.blocks > 1 || nan || amax > largestQuery {
		return
	}
	f, _ := k.format()
	if c.k, c.viewK = k, viewOf(f); c.blocks {
		c.viewK.inBlocks(codes)
	}
	c.rowQ = c.one && codes
	for i := range q {
		q[i] *= c.viewK.unit
	}
}

// takeKeys reports whether the codes of a tile's keys are read as they lie, and finds them.
func (x *vectors) takeKeys(a *computation, kvHead, k0, k1 int) bool {
	if x.kernels == nil || x.codes.k == nil {
		return false
	}
	x.codes.next = nil
	if k1 < a.sizes.Keys && !a.gone(k1) {
		x.codes.next = x.codes.k.panel(kvHead, k1, 0)
	}
	for i := range panels {
		x.codesK[i] = nil
		if key := k0 + i*panel; key < k1 {
			if x.codesK[i] = x.codes.k.panel(kvHead, key, 0); x.codesK[i] == nil {
				x.codesK = [panels][]byte{}
				return false
			}
		}
	}
	return true
}

// divideKeys makes decoded keys, which were not taken, what rows of queries are laid out for.
func (x *vectors) divideKeys(k []float32) {
	if x.kernels == nil || x.codes.k == nil || x.codes.viewK.unit == 1 {
		return
	}
	for i := range k {
		k[i] /= x.codes.viewK.unit
	}
}

// takeValues reports whether the codes of a tile's values are read as they lie.
func (x *vectors) takeValues(a *computation, kvHead, k0 int) bool {
	x.codesV, x.codes.values = nil, nil
	if x.kernels != nil && x.codes.v != nil {
		x.codes.values = x.codes.v.panel(kvHead, k0, 0)
	}
	if x.codes.values != nil {
		x.codesV = x.codes.v
	}
	return x.codesV != nil
}

// ahead returns how far it is from a panel to what will be needed about half a tile later:
// for a panel of keys so much of the values, for one of values so much of the next tile's
// keys as lies that many bytes behind the first of them. Panels lie in one array.
func ahead(panel, later []byte, offset int) int {
	if later == nil {
		return 0
	}
	return cap(panel) - cap(later) + offset
}

// unitV is what P is multiplied with for values that are divided by it.
func (x *vectors) unitV() float32 {
	switch {
	case x.kernels.Dots != nil && !x.unsafe:
		return dotsUnit
	case x.codesV == nil:
		return 1
	}
	return x.codes.viewV.unit
}

// direct reports whether all rows are one register block, so that codes need not be decoded
// for more.
func (x *vectors) direct() bool {
	return x.codes.blocks || x.kernels.Dots == nil && x.rows == x.kernels.MR
}

// decodeKeys decodes a panel of keys, which is read more than once.
func (x *vectors) decodeKeys(to []float32, i int) {
	if x.kernels.Dots != nil {
		x.packQuads(to, x.codesK[i], x.tableK)
		return
	}
	x.decode(to, x.codesK[i], &x.codes.viewK, x.aheadOfKeys(i))
}

// decode writes the values of codes, of a panel.
func (x *vectors) decode(to []float32, codes []byte, v *codeView, ahead int) {
	kernel := x.kernels.DecodeFloat16
	if x.kernels.MultiplyPairs != nil {
		kernel = x.kernels.DecodePairs
	}
	kernel(&to[0], &codes[0], len(to), v.factor, v.mask, ahead)
}

func (x *vectors) aheadOfKeys(i int) int {
	return ahead(x.codesK[i], x.codes.values, i*len(x.codesK[i]))
}

// multiplyKeyCodes writes the scores of all rows, of a panel of keys.
func (x *vectors) multiplyKeyCodes(s *scratch, i int) {
	first := 0
	t := &x.task
	t.Blocks, t.Pairs, t.RowBlocks = 1, x.depth/2, 1
	t.Flags = microkernel.First | microkernel.Last
	if x.codes.blocks {
		first = x.first
		t.RowBlocks = ceilDiv(x.last-first, microkernel.CodeRows)
		t.Flags |= microkernel.Zero
	} else {
		for row := range x.rows {
			clear(s.p[row*tile+i*panel:][:panel])
		}
	}
	t.A, t.ScaleA = &x.q[first*x.depth], &x.scalesQ[first*x.blocks]
	t.Ahead = x.aheadOfKeys(i)
	x.multiplyCodes(s.p[first*tile+i*panel:], x.scalesK[i], x.codesK[i], &x.codes.viewK, x.codes.rowQ)
}

// multiplyCodes runs the task for a panel of codes. row says that there is one row, whose
// values are float16s.
func (x *vectors) multiplyCodes(c, scales []float32, codes []byte, v *codeView, row bool) {
	t, kernel, columns := &x.task, x.kernels.MultiplyCodes, x.kernels.NR
	switch {
	case row:
		kernel, columns = x.kernels.MultiplyCodesRow, panel
	case x.codes.blocks:
		kernel, columns = x.kernels.MultiplyCodeBlocks, panel/2
	}
	t.Multiplier, t.Mask, t.Whole = v.factor, v.mask, v.whole
	for at := 0; at < panel; at += columns {
		t.Codes, t.C, t.ScaleB = &codes[at], &c[at], &scales[at]
		kernel(t)
	}
}

// multiplyValueCodes adds P times the tile's values to O, as the task for the first column
// says.
func (x *vectors) multiplyValueCodes(s *scratch, kvHead, k0, n int) {
	t, nr, v := &x.task, x.kernels.NR, &x.codes.viewV
	depth := roundUp(n, 2*x.together) * panel
	for d := 0; d < s.width; d += panel {
		codes := x.codesV.panel(kvHead, k0, d)
		t.Ahead = ahead(codes, x.codes.next, d*tile)
		if x.direct() {
			x.multiplyCodes(s.o[x.first*s.width+d:], ones[:], codes, v,
				x.codes.one && s.softmax.Lattice != nil)
			continue
		}
		x.codes.buffer = grow(x.codes.buffer, tile*panel)
		if x.kernels.Dots != nil {
			x.packQuads(x.codes.buffer[:depth], codes, x.tableV)
		} else {
			x.decode(x.codes.buffer[:depth], codes, v, t.Ahead)
		}
		for at := 0; at < panel; at += nr {
			t.B, t.C = &x.codes.buffer[at], &s.o[x.first*s.width+d+at]
			x.multiply()
		}
	}
}
