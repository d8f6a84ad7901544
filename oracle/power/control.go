package power

import (
	"context"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/tensor"
)

// controls are correct kernels whose statistics are allowed.
func controls[T gemm.Output](dequantized bool) []func(ctx context.Context, p *population, old []T, o *Options) ([]T, error) {
	all := []func(ctx context.Context, p *population, old []T, o *Options) ([]T, error){canonical[T]}
	loops := []loop{plain}
	if dequantized {
		loops = []loop{scaledFirst, scaledFused}
	}
	for _, l := range loops {
		all = append(all, func(ctx context.Context, p *population, old []T, o *Options) ([]T, error) {
			return multiply(ctx, p, old, o, l)
		})
	}
	return all
}

// canonical is octavo's product.
func canonical[T gemm.Output](ctx context.Context, p *population, old []T, o *Options) ([]T, error) {
	c := make([]T, p.m*p.n)
	copy(c, old)
	if err := gemm.Multiply(ctx, c, p.a, p.b, gemm.Options{Bias: o.Bias, Accumulate: old != nil, Workers: o.Workers}); err != nil {
		return nil, fmt.Errorf("power: %w", err)
	}
	return c, nil
}

// loop adds the products of a block with scales sa and sb to total, in float32.
type loop func(total float32, x, y []float32, sa, sb float32) float32

func plain(total float32, x, y []float32, sa, sb float32) float32 {
	var sum float32
	for k, v := range x {
		sum += float32(v * y[k])
	}
	return total + float32(float32(sum*sa)*sb)
}

func scaledFirst(total float32, x, y []float32, sa, sb float32) float32 {
	for k, v := range x {
		total += float32(float32(v*sa) * float32(y[k]*sb))
	}
	return total
}

// scaledFused rounds twice where the float64 is next to a tie of float32, which is seldom.
func scaledFused(total float32, x, y []float32, sa, sb float32) float32 {
	for k, v := range x {
		product := float64(float64(float32(v*sa)) * float64(float32(y[k]*sb)))
		total = float32(float64(total) + product)
	}
	return total
}

// multiply is the product by a loop over k.
func multiply[T gemm.Output](ctx context.Context, p *population, old []T, o *Options, add loop) ([]T, error) {
	c := slices.Clone(old)
	if c == nil {
		c = make([]T, p.m*p.n)
	}
	columns := make([][]float32, p.n)
	for j := range columns {
		columns[j] = floats(p.b, j)
	}
	parallel.For(p.m, 1, o.Workers, func(lo, hi int) {
		for i := lo; i < hi && meter.Err(ctx) == nil; i++ {
			x := floats(p.a, i)
			for j, y := range columns {
				var total float32
				for k0 := 0; k0 < p.k; k0 += p.block {
					k1 := min(k0+p.block, p.k)
					total = add(total, x[k0:k1], y[k0:k1], p.a.Scale(i, k0), p.b.Scale(j, k0))
				}
				total = float32(total * float32(p.a.Outer.Factor(i)*p.b.Outer.Factor(j)))
				if o.Bias != nil {
					total += o.Bias[j]
				}
				if old != nil {
					total += number.Float32(old[i*p.n+j])
				}
				c[i*p.n+j] = number.From[T](total)
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
