package bench

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Octavo is who computes a [Case] that is no peer's.
const Octavo = "octavo"

// Operands are those of a product, of its shape's recipe.
type Operands struct {
	shape  Shape
	a      *tensor.Tensor
	b      []*tensor.Tensor // one for each expert
	packed []*gemm.Packed   // b
	rows   []int            // of each expert
	c      []float32
}

// NewOperands returns operands of normally distributed values. Experts have the
// same weights, each in memory of their own.
func NewOperands(s Shape) (*Operands, error) {
	a, err := quantized(s.M, s.K, s.Recipe.of().input)
	if err != nil {
		return nil, err
	}
	b, err := quantized(s.N, s.K, s.Recipe.of().weight)
	if err != nil {
		return nil, err
	}
	o := &Operands{shape: s, a: a, c: make([]float32, s.M*s.N)}
	for range s.Experts {
		w := *b
		w.Codes, w.Scales = bytes.Clone(b.Codes), slices.Clone(b.Scales)
		packed, err := gemm.Pack(&w)
		if err != nil {
			return nil, err
		}
		o.b, o.packed, o.rows = append(o.b, &w), append(o.packed, packed), append(o.rows, s.M/s.Experts)
	}
	return o, nil
}

func quantized(rows, cols int, r scaling.Recipe) (*tensor.Tensor, error) {
	t := &tensor.Tensor{Shape: []int{rows, cols}}
	return t, scaling.Quantize(context.Background(), t, normals(rows*cols), scaling.Quantizer{Recipe: r})
}

// normals returns values of a normal distribution, always the same.
func normals(n int) []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// Cases returns the products of the operands at a level, with B as a tensor and
// packed.
func (o *Operands) Cases(l cpu.Level, workers int) []Case {
	c := Case{Name: o.shape.String(), By: Octavo, Level: l, Workers: workers}
	plain, packed := c, c
	plain.Run = func() error { return multiply(o, o.b) }
	packed.Packed, packed.Run = true, func() error { return multiply(o, o.packed) }
	return []Case{plain, packed}
}

func multiply[W gemm.Weights](o *Operands, b []W) error {
	ctx := context.Background() // a measurement ends between two products
	if o.shape.Experts == 1 {
		return gemm.Multiply(ctx, o.c, o.a, b[0], gemm.Options{})
	}
	return gemm.GroupedRows(ctx, o.c, o.a, b, o.rows, gemm.Options{})
}
