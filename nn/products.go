package nn

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/tensor"
)

// products are the three matrix products of a linear layer. w is [out, in]; x and
// dx are [rows, in], y and dy are [rows, out]. Results do not overlap operands.
type products interface {
	// forward is y = x·Wᵀ. Where common is not nil, other layers are given the same x.
	forward(ctx context.Context, y, x, w []float32, s shape, common *commonInput) error

	inputGradient(ctx context.Context, dx, dy, w []float32, s shape) error // dx = dy·W

	// weightGradient is dw = dyᵀ·x, [out, in]. Where kept is not nil it is xᵀ in FP8.
	weightGradient(ctx context.Context, dw, dy, x []float32, kept *tensor.Tensor, s shape, common *commonInput) error
}

// shape is the size of a linear layer and the number of rows it works on.
type shape struct{ rows, out, in int }

// fp32Products multiplies in FP32.
type fp32Products struct{ workers int }

func (p *fp32Products) forward(ctx context.Context, y, x, w []float32, s shape, _ *commonInput) error {
	c, a, b := canonical.Dense(y, s.out), canonical.Dense(x, s.in), canonical.Dense(w, s.in)
	return canonical.MultiplyContext(ctx, c, a, b, s.rows, s.out, s.in, p.workers)
}

func (p *fp32Products) inputGradient(ctx context.Context, dx, dy, w []float32, s shape) error {
	c, a, b := canonical.Dense(dx, s.in), canonical.Dense(dy, s.out), canonical.Dense(w, s.in).T()
	return canonical.MultiplyContext(ctx, c, a, b, s.rows, s.in, s.out, p.workers)
}

func (p *fp32Products) weightGradient(ctx context.Context, dw, dy, x []float32, _ *tensor.Tensor, s shape, _ *commonInput) error {
	c, a, b := canonical.Dense(dw, s.in), canonical.Dense(dy, s.out).T(), canonical.Dense(x, s.in).T()
	return canonical.MultiplyContext(ctx, c, a, b, s.out, s.in, s.rows, p.workers)
}
