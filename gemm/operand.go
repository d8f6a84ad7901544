package gemm

import (
	"unsafe"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/internal/race"
	"github.com/octavo-fp8/octavo/internal/transpose"
	"github.com/octavo-fp8/octavo/tensor"
)

// operand is what products need of a tensor or of packed weights. Its codes are
// either in rows or in panels.
type operand struct {
	format fp8.Format
	codes  []byte // in rows
	stride int    // between rows

	packed     bool   // in panels
	panels     []byte // each of microkernel.PanelWidth rows
	layout     layout
	depth      int  // of a panel: K, rounded up to what the layout needs
	allFloat16 bool // all codes of the panels can be read as float16s

	scales grid
	bytes  scaleBytes // in place of scales, in packed weights
	outer  tensor.Outer
}

func newOperand(t *tensor.Tensor) operand {
	stride, _ := t.Strides()
	return operand{format: t.Format, codes: t.Codes, stride: stride, scales: newGrid(t), outer: t.Outer}
}

// address is where a slice starts, of which only the processor's caches hear.
func address(s []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// row returns codes [k0, k1) of a row, in buf where they do not lie together.
func (o *operand) row(buf []byte, i, k0, k1 int) []byte {
	if !o.packed {
		return o.codes[i*o.stride+k0 : i*o.stride+k1]
	}
	buf = grow(buf, k1-k0)
	panel := o.panel(i / microkernel.PanelWidth)
	for j := range buf {
		buf[j] = o.layout.code(panel, k0+j, i%microkernel.PanelWidth)
	}
	return buf
}

// noteReads tells the race detector that the codes of rows [lo, hi), of k each, are
// read: it does not see what assembly does.
func (o *operand) noteReads(lo, hi, k int) {
	switch {
	case !race.Enabled:
	case o.packed:
		first, last := lo/microkernel.PanelWidth, ceilDiv(hi, microkernel.PanelWidth)
		race.Read(o.panels[first*o.panelSize() : last*o.panelSize()])
	default:
		for i := lo; i < hi; i++ {
			race.Read(o.codes[i*o.stride:][:k])
		}
	}
}

// panel returns a panel of packed weights.
func (o *operand) panel(i int) []byte {
	size := o.panelSize()
	return o.panels[i*size : (i+1)*size]
}

// panelPart returns what a panel, the one with column j, has from k on along so much of K.
func (o *operand) panelPart(j, k, depth int) []byte {
	return o.panel(j / microkernel.PanelWidth)[o.layout.size(k):o.layout.size(k+depth)]
}

func (o *operand) panelSize() int { return o.layout.size(o.depth) }

// scale is the scale of row i at k.
func (o *operand) scale(i, k int) float32 {
	if o.bytes.codes != nil {
		return o.bytes.at(i, k/o.scales.cols)
	}
	return o.scales.at(i, k)
}

// grid is the scales of an operand: of rows x cols values each, rows of scales
// being stride apart.
type grid struct {
	scales             []float32
	stride, rows, cols int
}

func newGrid(t *tensor.Tensor) grid {
	rows, cols := t.Block.Extents(t.Dims())
	_, stride := t.Strides()
	return grid{t.Scales, stride, rows, cols}
}

func (g *grid) at(i, k int) float32 { return g.scales[i/g.rows*g.stride+k/g.cols] }

// along writes the scales of row i at k, k+block and so on to dst.
func (g *grid) along(dst []float32, i, k, block int) {
	row := g.scales[i/g.rows*g.stride:]
	column, offset := k/g.cols, k%g.cols
	for b := range dst {
		dst[b] = row[column]
		if offset += block; offset >= g.cols {
			column, offset = column+1, 0
		}
	}
}

// across writes the scales of rows [i0, i1) at k, k+block and so on to rows of
// width values of dst, and adds zeros.
func (g *grid) across(dst []float32, width, i0, i1, k, block int) {
	column, offset := k/g.cols, k%g.cols
	first, inBlock := i0/g.rows*g.stride, g.rows-i0%g.rows
	if blocks := len(dst) / width; g.rows == 1 && block == g.cols && blocks > 1 {
		transpose.Matrix(dst, width, g.scales[first+column:], g.stride, i1-i0, blocks)
		for ; len(dst) > 0 && i1-i0 < width; dst = dst[width:] {
			clear(dst[i1-i0 : width])
		}
		return
	}
	for ; len(dst) > 0; dst = dst[width:] {
		row, at, left := dst[:i1-i0], first+column, inBlock
		if g.rows == 1 {
			for j := range row {
				row[j] = g.scales[at]
				at += g.stride
			}
			row = nil
		}
		for len(row) > 0 {
			n, scale := min(left, len(row)), g.scales[at]
			for j := range row[:n] {
				row[j] = scale
			}
			row, at, left = row[n:], at+g.stride, g.rows
		}
		clear(dst[i1-i0 : width])
		if offset += block; offset >= g.cols {
			column, offset = column+1, 0
		}
	}
}
