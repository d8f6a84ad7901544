package parity

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// narrow are products of quantized operands in a model that is float64 otherwise. They are
// added exactly, and beside that in other ways, to see what these do alone.
type narrow struct {
	recipes nn.FP8
	ways    []addition
	found   [][]additionError // of each product, by way
}

// additionError is how far the sums of a product are from exact ones.
type additionError struct {
	relative   float64 // length of the error over that of the product
	projection float64 // on the exact product, less 1
}

// multiplier writes a·bᵀ to c.
type multiplier func(ctx context.Context, c []float32, a, b *tensor.Tensor) error

// exactly adds what the codes stand for in float64.
func exactly(c blas64.General, a, b *tensor.Tensor) {
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, decoded(a), decoded(b), 0, c)
}

func decoded(t *tensor.Tensor) blas64.General {
	values := make([]float32, t.Len())
	tensor.Dequantize(values, t)
	rows, cols := t.Shape[0], t.Shape[1]
	m := blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: make([]float64, len(values))}
	for i, v := range values {
		m.Data[i] = float64(v)
	}
	return m
}

// kernel adds as one on a tensor core does.
func kernel(k oracle.Kernel) multiplier {
	return func(ctx context.Context, sums []float32, a, b *tensor.Tensor) error {
		return oracle.Predict(ctx, sums, nil, a, b, k, oracle.Options{Workers: 1})
	}
}

// canonical adds as package gemm does.
func canonical(ctx context.Context, sums []float32, a, b *tensor.Tensor) error {
	return gemm.Multiply(ctx, sums, a, b, gemm.Options{Workers: 1})
}

// Forward writes x·Wᵀ to c.
func (n *narrow) Forward(ctx context.Context, c, x, w blas64.General) error {
	return n.product(ctx, c, x.Data, w.Data, n.recipes.Forward)
}

// InputGradient writes dy·W to c.
func (n *narrow) InputGradient(ctx context.Context, c, dy, w blas64.General) error {
	return n.product(ctx, c, dy.Data, transposed(w), n.recipes.InputGradient)
}

// WeightGradient writes dyᵀ·x to c.
func (n *narrow) WeightGradient(ctx context.Context, c, dy, x blas64.General) error {
	return n.product(ctx, c, transposed(dy), transposed(x), n.recipes.WeightGradient)
}

func transposed(m blas64.General) []float64 {
	t := make([]float64, len(m.Data))
	for i := range m.Rows {
		for j := range m.Cols {
			t[j*m.Rows+i] = m.Data[i*m.Cols+j]
		}
	}
	return t
}

// product writes a·bᵀ to c, with a and b quantized.
func (n *narrow) product(
	ctx context.Context, c blas64.General, a, b []float64, o nn.Operands,
) error {
	qa, err := n.quantized(ctx, a, c.Rows, o.A)
	if err != nil {
		return err
	}
	qb, err := n.quantized(ctx, b, c.Cols, o.B)
	if err != nil {
		return err
	}
	exactly(c, qa, qb)
	var errors []additionError
	sums := make([]float32, len(c.Data))
	for _, way := range n.ways {
		if err := way.multiply(ctx, sums, qa, qb); err != nil {
			return err
		}
		errors = append(errors, additionErrorOf(sums, c.Data))
	}
	n.found = append(n.found, errors)
	return nil
}

func additionErrorOf(got []float32, want []float64) additionError {
	var off, along, squares float64
	for i, v := range want {
		d := float64(got[i]) - v
		off += d * d
		along += d * v
		squares += v * v
	}
	return additionError{math.Sqrt(off / squares), along / squares}
}

// quantized rounds values to float32 first, as a layer has them.
func (n *narrow) quantized(
	ctx context.Context, values []float64, rows int, r scaling.Recipe,
) (*tensor.Tensor, error) {
	single := make([]float32, len(values))
	for i, v := range values {
		single[i] = float32(v)
	}
	t := &tensor.Tensor{Shape: []int{rows, len(values) / rows}}
	q := scaling.Quantizer{Recipe: r, Options: tensor.Options{Workers: 1}}
	return t, scaling.Quantize(ctx, t, single, q)
}
