package generate

import (
	"context"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// linear is y = x·Wᵀ of a weight that does not change.
type linear struct {
	out, in int
	values  []float32    // W, [out, in], in FP32; nil if it is packed
	packed  *gemm.Packed // W in FP8
}

// newLinear returns the layer of a weight, which is packed under the recipe unless that is
// nil.
func newLinear(ctx context.Context, w *nn.Param, r *nn.Operands, workers int) (linear, error) {
	l := linear{out: w.Rows, in: w.Cols}
	if r == nil {
		l.values = w.Value
		return l, nil
	}
	t := tensor.Tensor{Name: w.Name, Shape: []int{w.Rows, w.Cols}}
	q := scaling.Quantizer{Recipe: r.B, Options: tensor.Options{Op: "pack", Workers: workers}}
	if err := scaling.Quantize(ctx, &t, w.Value, q); err != nil {
		return l, err
	}
	var err error
	l.packed, err = gemm.Pack(&t)
	return l, err
}

// bytes returns how many bytes of memory the weight takes, all of which a token reads.
func (l *linear) bytes() int64 {
	if l.packed != nil {
		return l.packed.Bytes()
	}
	return 4 * int64(len(l.values))
}

// input is what linear layers multiply: rows in FP32, and their codes if there is a recipe.
type input struct {
	rows   int
	values []float32
	codes  tensor.Tensor
}

// set takes rows of x, and quantizes them unless there is no recipe.
func (in *input) set(ctx context.Context, x []float32, rows int, o *Options) error {
	in.rows, in.values = rows, x
	if o.FP8 == nil {
		return nil
	}
	in.codes.Name = "input"
	in.codes.Shape = append(in.codes.Shape[:0], rows, len(x)/rows)
	q := scaling.Quantizer{Recipe: o.FP8.A, Options: tensor.Options{Workers: o.Workers}}
	return scaling.Quantize(ctx, &in.codes, x, q)
}

// multiply writes the product of an input to y, [rows, out].
func (l *linear) multiply(ctx context.Context, y []float32, in *input, workers int) error {
	if l.packed != nil {
		return gemm.Multiply(ctx, y, &in.codes, l.packed, gemm.Options{Workers: workers})
	}
	a, b := canonical.Dense(in.values, l.in), canonical.Dense(l.values, l.in)
	return canonical.MultiplyContext(ctx, canonical.Dense(y, l.out), a, b, in.rows, l.out, l.in,
		workers)
}
