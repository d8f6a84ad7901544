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
	if err == nil {
		p := product{grid: g, block: max(g.k, 1), run: runs.Add(1)}
		mantissa := 2 * a.Format.layout().fraction
		err = predict(ctx, c, bound, &g, &k, &o, func(s *prediction, t *tile) func(i int) []running {
			s.begin(&p, &k, a, b, mantissa, t)
			return s.floatRow
		})
	}
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
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
