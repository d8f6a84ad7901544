package generate

import (
	"context"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/halves"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// linear is y = x·Wᵀ + b of a weight and a bias that do not change.
type linear struct {
	out, in int
	values  []float32         // W, [out, in], in FP32
	halves  *canonical.Packed // or in bfloat16
	packed  *gemm.Packed      // or in FP8
	bias    []float32         // that is added to each row; nil: none
}

// bytes returns how many bytes of memory weight and bias take, all of which a token reads.
func (l *linear) bytes() int64 {
	n := 4 * int64(len(l.values)+len(l.bias))
	switch {
	case l.packed != nil:
		n += l.packed.Bytes()
	case l.halves != nil:
		n += l.halves.Bytes()
	}
	return n
}

// table is rows that are looked up by token, in one of three forms.
type table struct {
	cols   int
	values []float32
	halves []fp8.BFloat16
	codes  tensor.Tensor
}

// row writes a row.
func (t *table) row(dst []float32, i int) {
	switch {
	case t.values != nil:
		copy(dst, t.values[i*t.cols:])
	case t.halves != nil:
		halves.Widen(dst, t.halves[i*t.cols:][:t.cols])
	default:
		tensor.DequantizeRows(dst, &t.codes, i)
	}
}

// input is what linear layers multiply: rows in FP32, and their codes if there is a recipe.
type input struct {
	rows   int
	values []float32
	codes  tensor.Tensor
}

// set takes rows of x, and quantizes them unless there is no recipe.
func (in *input) set(
	ctx context.Context, x []float32, rows int, r *nn.Operands, workers int,
) error {
	in.rows, in.values = rows, x
	if r == nil {
		return nil
	}
	in.codes.Name = "input"
	in.codes.Shape = append(in.codes.Shape[:0], rows, len(x)/rows)
	q := scaling.Quantizer{Recipe: r.A, Options: tensor.Options{Workers: workers}}
	return scaling.Quantize(ctx, &in.codes, x, q)
}

// multiply writes the product of an input, and the bias, to y, [rows, out].
func (l *linear) multiply(ctx context.Context, y []float32, in *input, workers int) error {
	err := l.product(ctx, y, in, workers)
	if l.bias == nil || err != nil {
		return err
	}
	for ; len(y) > 0; y = y[l.out:] {
		for i, b := range l.bias {
			y[i] += b
		}
	}
	return nil
}

func (l *linear) product(ctx context.Context, y []float32, in *input, workers int) error {
	if l.packed != nil {
		return gemm.Multiply(ctx, y, &in.codes, l.packed, gemm.Options{Workers: workers})
	}
	a, c := canonical.Dense(in.values, l.in), canonical.Dense(y, l.out)
	if l.halves != nil {
		return canonical.MultiplyPacked(ctx, c, a, l.halves, in.rows, workers)
	}
	b := canonical.Dense(l.values, l.in)
	return canonical.MultiplyContext(ctx, c, a, b, in.rows, l.out, l.in, workers)
}
