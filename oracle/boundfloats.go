package oracle

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/gemm"
)

// BoundFloats is [Bound] for operands in BF16, FP16 or TF32: how far the C of a correct
// kernel may be from that of [ExactFloats]. There are no scales, so that of acc only
// Truncated and Kernel count. Products of BF16 and of TF32 that are subnormal in float32
// may be rounded; none is expected to be flushed to zero.
func BoundFloats[T gemm.Output](ctx context.Context, bound []float64, old []T, a, b *Floats, acc Accumulation, o Options) error {
	g, err := newFloatsGrid(a, b)
	if err == nil && acc.modeled() {
		err = acc.Kernel.checkFloats(a)
	}
	if err == nil {
		err = g.checkOptions(len(bound), &o)
	}
	if err == nil {
		d := newFloatDerivation(g, &acc, &o, layoutOf[T]())
		err = bounds(ctx, bound, old, g, &o, func(t *tile) (func(i, j int, e ending) float64, func()) {
			s := newFloatSums(a, b, t, acc.modeled())
			return func(i, j int, e ending) float64 { return d.element(s, i, j, e) }, func() { floatPool.Put(s) }
		})
	}
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

// floatDerivation is what the bounds of a product's elements have in common.
type floatDerivation struct {
	k             int
	out           layout
	inside, final float64 // relative errors of the sum of products, and of additions after it
	step          float64 // what all steps lose at the end of float32's range
	least         float64 // the largest error of a product that underflows
	modeled       bool
}

func newFloatDerivation(g grid, acc *Accumulation, o *Options, out layout) floatDerivation {
	d := floatDerivation{k: g.k, out: out, least: 0x1p-150, modeled: acc.modeled()}
	u := 0x1p-24
	if acc.Truncated {
		u, d.least = 0x1p-23, 0x1p-149
	}
	epilogue := 0
	if o.Bias != nil {
		epilogue++
	}
	if o.Accumulate {
		epilogue++
	}
	d.final = gamma(epilogue, u)
	if !d.modeled {
		d.inside = gamma(max(g.k-1, 0), u)
		return d
	}
	if g.k > 0 {
		d.inside = acc.Kernel.coefficient(nil, g.k, u)
	}
	m := &acc.Kernel.Model
	chain := g.k
	if p := acc.Kernel.Promote; p > 0 {
		chain = min(chain, p)
	}
	chains := (g.k + chain - 1) / max(chain, 1)
	steps := (chain+m.K-1)/m.K*((m.K+m.L-1)/m.L) + 1
	d.step = float64(float64(float64(chains)*float64(steps)) * m.stepUnderflow())
	return d
}

// element bounds element (i, j).
func (d *floatDerivation) element(s *floatSums, i, j int, e ending) float64 {
	if s.class(i, j, e) != finite {
		return 0
	}
	row, column := i-s.i0, j-s.j0
	total := dotMagnitudes(s.tileA.magnitudes[row*d.k:(row+1)*d.k], s.tileB.magnitudes[column*d.k:(column+1)*d.k])
	err := float64(total * d.inside)
	switch {
	case total == 0:
	case d.modeled:
		err += float64(d.step * (1 + d.inside))
	case s.tileA.least[row]*s.tileB.least[column] < 0x1p-126:
		err += float64(float64(float64(d.k)*d.least) * (1 + d.inside))
	}
	operations := 4*d.k + 64
	total += math.Abs(float64(e.bias))
	total += math.Abs(float64(e.old))
	err = float64(err*(1+d.final)) + float64(total*d.final)
	if raise(total+err, operations) >= layout32.overflow() {
		return math.Inf(1)
	}
	exact := math.Abs(s.exactFloat64(i, j, e))
	if d.out != layout32 {
		err += d.out.rounding(raise(exact+err, operations))
	}
	return raise(err+d.out.rounding(exact), operations)
}
