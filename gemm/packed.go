package gemm

import (
	"slices"
	"sync/atomic"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/integer"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Packed is weights, the B of products, in the order in which kernels read them.
// It is made by [Pack]. A product with it has the bits of one with the tensor
// that it was made of, at any level, and is faster where A has few rows.
//
// It has its own copy of codes and scales; later changes of the tensor are not seen. A
// code takes one byte, or half of one in a format of four bits, with N rounded up to a
// multiple of 32 and K to one of 2, or of 8 in E2M1, E2M3 and MXINT8. A scale takes four
// bytes, or one where it is encoded and each row has its own. It may be used by many
// goroutines at once.
type Packed struct {
	header     tensor.Tensor // without codes
	panels     []byte
	layout     layout
	depth      int
	allFloat16 bool
	bytes      scaleBytes // in place of the header's scales
	made       bool       // by Pack
}

// Weights is what B of a product may be.
type Weights interface{ *tensor.Tensor | *Packed }

// Pack packs a tensor of shape [N, K]. It returns an error if the tensor is not
// whole or a scale is none of its format's. It takes no context: weights are packed
// once, when they are loaded, and that only moves bytes, on all processors.
func Pack(t *tensor.Tensor) (*Packed, error) {
	if err := checkOperand(t); err != nil {
		return nil, inPackage(err)
	}
	n, k := t.Dims()
	w := &Packed{header: tensor.Tensor{
		Name: t.Name, Format: t.Format, Shape: append([]int{}, t.Shape...), Block: t.Block,
		ScaleFormat: t.ScaleFormat, Outer: t.Outer,
	}}
	w.header.Outer.Scales = slices.Clone(t.Outer.Scales)
	w.made = true
	if k == 0 { // nothing, of perhaps very many rows
		return w, nil
	}
	gridRows, _ := t.Grid()
	if t.ScaleFormat.Encoded() && gridRows == n {
		w.bytes = newScaleBytes(t)
	} else {
		for i := range gridRows {
			w.header.Scales = append(w.header.Scales, t.ScaleRow(i)...)
		}
	}
	w.layout = layoutOf(t.Format)
	w.depth = w.layout.depth(k)
	w.panels = memory.Large[byte](ceilDiv(n, microkernel.PanelWidth) * w.layout.size(w.depth))
	if w.layout == kMajor {
		w.fill(newOperand(t), n, k)
	} else {
		w.fillQuads(newOperand(t), n, k)
	}
	return w, nil
}

// fillQuads writes panels of quads or nibbles. Bits above the format's width stay behind.
func (w *Packed) fillQuads(o operand, n, k int) {
	const piece, width = 4096, microkernel.PanelWidth
	o.noteReads(0, n, k)
	mask := byte(1<<o.format.Bits() - 1)
	parallel.For(n, panelsAtOnce*width, 0, func(lo, hi int) {
		buf := make([]byte, min(w.depth, piece)*width)
		for j := lo; j < hi; j += width {
			panel := w.panels[j/width*w.layout.size(w.depth):]
			for k0 := 0; k0 < k; k0 += piece {
				codes := buf[:min(piece, w.depth-k0)*width]
				clear(codes)
				integer.PackQuads(codes, o.codes[j*o.stride+k0:], o.stride, min(width, n-j), min(piece, k-k0))
				if w.layout == nibbles {
					integer.PackNibbles(panel[w.layout.size(k0):], codes)
					continue
				}
				for i, c := range codes {
					panel[k0*width+i] = c & mask
				}
			}
		}
	})
}

// panelsAtOnce is how many panels one goroutine packs at least.
const panelsAtOnce = 8

// fill writes the panels, in pieces that do not keep an assembly routine, which
// the garbage collector must wait for, for long. Memory that is new is given out meanwhile,
// which takes longer than packing: all processors ask for it.
func (w *Packed) fill(o operand, n, k int) {
	const piece = 4096
	o.noteReads(0, n, k)
	kernels, view := microkernel.For(cpu.Current()), &float16Views[o.format]
	var others atomic.Bool // that are no float16s
	parallel.For(n, panelsAtOnce*microkernel.PanelWidth, 0, func(lo, hi int) {
		for j := lo; j < hi; j += microkernel.PanelWidth {
			panel := w.panels[j*w.depth : (j+microkernel.PanelWidth)*w.depth]
			for k0 := 0; k0 < k; k0 += piece {
				depth, to := min(piece, k-k0), panel[k0*microkernel.PanelWidth:]
				kernels.PackPanel(to, o.codes[j*o.stride+k0:], o.stride, min(microkernel.PanelWidth, n-j), depth)
				if !view.exact(kernels, to[:depth*microkernel.PanelWidth]) {
					others.Store(true)
				}
			}
		}
	})
	w.allFloat16 = !others.Load()
}

// Dims returns N and K; 0 and 0 for weights that were not made by [Pack].
func (w *Packed) Dims() (n, k int) {
	if w.check() != nil {
		return 0, 0
	}
	return w.header.Dims()
}

// Bytes returns how much memory codes and scales take, all of which a product with one row
// reads; 0 for weights that were not made by [Pack].
func (w *Packed) Bytes() int64 {
	if w.check() != nil {
		return 0
	}
	scales := len(w.header.Scales) + len(w.header.Outer.Scales)
	return int64(len(w.panels)) + int64(len(w.bytes.codes)) + 4*int64(scales)
}

var errNotPacked = sentinel.Errorf(ErrOperands, "packed weights that were not made by Pack")

func (w *Packed) check() error {
	if w == nil || !w.made {
		return errNotPacked
	}
	return nil
}

func (w *Packed) operand() operand {
	return operand{format: w.header.Format, panels: w.panels, layout: w.layout, depth: w.depth, bytes: w.bytes, packed: true, allFloat16: w.allFloat16, scales: newGrid(&w.header), outer: w.header.Outer}
}

// headerOf returns the tensor, or what packed weights know of theirs, or an error if
// it is not whole.
func headerOf[W Weights](w W) (*tensor.Tensor, error) {
	switch w := any(w).(type) {
	case *tensor.Tensor:
		return w, checkForm(w)
	case *Packed:
		if err := w.check(); err != nil {
			return nil, err
		}
		return &w.header, nil
	}
	return nil, nil
}
