package oracle

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// PredictFloats is [Predict] for operands in BF16, FP16 or TF32 and a model of their
// format, such as [Hopper] of BF16. There are no scales, so that k.Scales does not count;
// bounds are of the distance to the result of [ExactFloats].
func PredictFloats[T gemm.Output](ctx context.Context, c []T, bound []float64, a, b *Floats, k Kernel, o Options) error {
	g, err := newFloatsGrid(a, b)
	if err == nil {
		err = k.checkFloats(a)
	}
	if err == nil {
		err = g.checkOptions(len(c), &o)
	}
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	if bound != nil && len(bound) != len(c) {
		panic(wrongBound)
	}
	mantissa := 2 * a.Format.layout().fraction
	err = g.tiles(ctx, "predict", &o, func(t *tile) error {
		s := predictPool.Get().(*predictStrips)
		defer predictPool.Put(s)
		s.a = a.Format.elements(s.a[:0], a.Values[t.i0*g.k:t.i1*g.k])
		s.b = b.Format.elements(s.b[:0], b.Values[t.j0*g.k:t.j1*g.k])
		for i := range t.i1 - t.i0 {
			for j := range t.j1 - t.j0 {
				sum := k.blockSum(s.a[i*g.k:(i+1)*g.k], s.b[j*g.k:(j+1)*g.k], mantissa)
				storePrediction(c, bound, (t.i0+i)*g.n+t.j0+j, t.j0+j, sum, &k.Model, &g, &o)
				if err := t.done(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	reportNonFinite("predict", c, &o)
	return nil
}

// checkFloats reports whether the kernel can multiply matrices such as a.
func (k *Kernel) checkFloats(a *Floats) error {
	if err := k.checkFields(); err != nil {
		return err
	}
	if k.Model.Float != a.Format {
		return sentinel.Errorf(ErrModel, "tensor %q: model %q has no operands of format %v", a.Name, k.Model.Name, a.Format)
	}
	return nil
}
