package power

import (
	"context"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/tensor"
)

// canonical is octavo's product, a control.
func canonical[T gemm.Output](ctx context.Context, old []T, a, b *tensor.Tensor, o *Options) ([]T, error) {
	m, _ := a.Dims()
	n, _ := b.Dims()
	c := make([]T, m*n)
	copy(c, old)
	if err := gemm.Multiply(ctx, c, a, b, gemm.Options{Bias: o.Bias, Accumulate: old != nil, Workers: o.Workers}); err != nil {
		return nil, fmt.Errorf("power: %w", err)
	}
	return c, nil
}

// plain is the product in float32 by a plain loop over k, a control.
func plain[T gemm.Output](ctx context.Context, p *population, old []T, o *Options) ([]T, error) {
	c := slices.Clone(old)
	if c == nil {
		c = make([]T, p.m*p.n)
	}
	parallel.For(p.m, 1, o.Workers, func(lo, hi int) {
		for i := lo; i < hi && meter.Err(ctx) == nil; i++ {
			x := floats(p.a, i)
			for j := range p.n {
				y := floats(p.b, j)
				var total float32
				for k0 := 0; k0 < p.k; k0 += p.block {
					var sum float32
					for k := k0; k < min(k0+p.block, p.k); k++ {
						sum += float32(x[k] * y[k])
					}
					total += float32(float32(sum*p.a.Scale(i, k0)) * p.b.Scale(j, k0))
				}
				if o.Bias != nil {
					total += o.Bias[j]
				}
				if old != nil {
					total += float32(value(old[i*p.n+j]))
				}
				c[i*p.n+j] = narrowed[T](total)
			}
		}
	})
	if err := meter.Err(ctx); err != nil {
		return nil, fmt.Errorf("power: %w", err)
	}
	return c, nil
}

// floats are the codes of a row as numbers.
func floats(t *tensor.Tensor, i int) []float32 {
	row := t.Row(i)
	x := make([]float32, len(row))
	for k, c := range row {
		x[k] = t.Format.Float32(c)
	}
	return x
}
