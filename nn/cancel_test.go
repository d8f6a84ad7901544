package nn

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// endsAfter is a context that ends once it was asked so many times.
type endsAfter struct {
	context.Context
	left atomic.Int64
}

func (c *endsAfter) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestProductsEndEarly: the three products of a layer in FP32, and of one whose operands
// are rounded, leave the rest undone when their context ends.
func TestProductsEndEarly(t *testing.T) {
	s := shape{rows: 500, out: 600, in: 700}
	x, w, dy := randoms(1, s.rows*s.in), randoms(2, s.out*s.in), randoms(3, s.rows*s.out)
	rounding := DefaultRounding(NarrowE4M3)
	for _, o := range []Options{{}, {Rounding: &rounding}} {
		o.Workers = 1
		l, err := NewLinear("w", s.out, s.in, o)
		require.NoError(t, err)
		y, dx, dw := make([]float32, len(dy)), make([]float32, len(x)), make([]float32, len(w))
		for i, product := range []func(ctx context.Context) ([]float32, error){
			func(ctx context.Context) ([]float32, error) { return y, l.products.forward(ctx, y, x, w, s, nil) },
			func(ctx context.Context) ([]float32, error) {
				return dx, l.products.inputGradient(ctx, dx, dy, w, s)
			},
			func(ctx context.Context) ([]float32, error) {
				return dw, l.products.weightGradient(ctx, dw, dy, x, nil, s, nil)
			},
		} {
			ctx := &endsAfter{Context: t.Context()}
			ctx.left.Store(2)
			result, err := product(ctx)
			require.ErrorIs(t, err, context.Canceled, "product %d", i)
			require.Zero(t, result[len(result)-1], "product %d", i)
			result, err = product(t.Context())
			require.NoError(t, err)
			require.NotZero(t, result[len(result)-1], "product %d", i)
		}
	}
}
