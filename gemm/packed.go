package gemm

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Packed is weights, the B of products, in the order in which kernels read them.
// It is made by [Pack]. A product with it has the bits of one with the tensor
// that it was made of, at any level, and is faster where A has few rows.
//
// It has its own copy of codes and scales, one byte for each code, with N rounded
// up to a multiple of 32 and K to one of 2, and four for each scale; later changes
// of the tensor are not seen. It may be used by many goroutines at once.
type Packed struct {
	header     tensor.Tensor // without codes
	panels     []byte
	depth      int
	allFloat16 bool
	made       bool // by Pack
}

// Weights is what B of a product may be.
type Weights interface{ *tensor.Tensor | *Packed }

// Pack packs a tensor of shape [N, K]. It returns an error if the tensor is not
// whole or a scale is NaN, infinite or negative. It takes no context: weights are packed
// once, when they are loaded, and that only moves bytes.
func Pack(t *tensor.Tensor) (*Packed, error) {
	if err := checkOperand(t); err != nil {
		return nil, inPackage(err)
	}
	n, k := t.Dims()
	w := &Packed{header: tensor.Tensor{
		Name: t.Name, Format: t.Format, Shape: append([]int{}, t.Shape...), Block: t.Block,
	}}
	w.made = true
	if k == 0 { // nothing, of perhaps very many rows
		return w, nil
	}
	gridRows, _ := t.Grid()
	for i := range gridRows {
		w.header.Scales = append(w.header.Scales, t.ScaleRow(i)...)
	}
	w.depth = roundUp(k, 2)
	w.panels = make([]byte, roundUp(n, microkernel.PanelWidth)*w.depth)
	w.fill(newOperand(t), n, k)
	return w, nil
}

// fill writes the panels, in pieces that do not keep an assembly routine, which
// the garbage collector must wait for, for long.
func (w *Packed) fill(o operand, n, k int) {
	const piece = 4096
	o.noteReads(0, n, k)
	kernels, view := microkernel.For(cpu.Current()), &float16Views[o.format]
	w.allFloat16 = true
	for j := 0; j < n; j += microkernel.PanelWidth {
		panel := w.panels[j*w.depth : (j+microkernel.PanelWidth)*w.depth]
		for k0 := 0; k0 < k; k0 += piece {
			depth, to := min(piece, k-k0), panel[k0*microkernel.PanelWidth:]
			kernels.PackPanel(to, o.codes[j*o.stride+k0:], o.stride, min(microkernel.PanelWidth, n-j), depth)
			w.allFloat16 = w.allFloat16 && view.exact(kernels, to[:depth*microkernel.PanelWidth])
		}
	}
}

// Dims returns N and K; 0 and 0 for weights that were not made by [Pack].
func (w *Packed) Dims() (n, k int) {
	if w.check() != nil {
		return 0, 0
	}
	return w.header.Dims()
}

var errNotPacked = sentinel.Errorf(ErrOperands, "packed weights that were not made by Pack")

func (w *Packed) check() error {
	if w == nil || !w.made {
		return errNotPacked
	}
	return nil
}

func (w *Packed) operand() operand {
	return operand{format: w.header.Format, panels: w.panels, depth: w.depth, packed: true, allFloat16: w.allFloat16, scales: newGrid(&w.header)}
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
