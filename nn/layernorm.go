package nn

import (
	"context"
	"strings"

	"github.com/octavo-fp8/octavo/internal/parallel"
)

// LayerNorm is layer normalization (Ba, Kiros & Hinton, arXiv 1607.06450), row by row:
// y = gain · c / √(mean(c²) + eps) + bias, where c is x less its mean.
type LayerNorm struct {
	Gain *Param // [1, dim], ones at first
	Bias *Param // [1, dim], zeros at first

	norm     *RMSNorm // of what is centered
	centered []float32
}

// NewLayerNorm returns a norm of rows of dim values. Name is that of the gain, such as
// "ln_1.weight"; the bias has ".bias" in place of ".weight". An eps of 0 is 1e-5. The error
// is [ErrConfig].
func NewLayerNorm(name string, dim int, eps float64, o Options) (*LayerNorm, error) {
	norm, err := NewRMSNorm(name, dim, eps, o)
	if err != nil {
		return nil, err
	}
	norm.bias = newParam(strings.TrimSuffix(name, ".weight")+".bias", 1, dim)
	norm.bias.Decay = false
	return &LayerNorm{Gain: norm.Gain, Bias: norm.bias, norm: norm}, nil
}

// Params returns the gain and the bias.
func (l *LayerNorm) Params() []*Param { return []*Param{l.Gain, l.Bias} }

// Forward writes the norm of each row of x, [rows, dim], to y, which is as long and must
// not overlap it. The layer keeps a copy of x, centered.
func (l *LayerNorm) Forward(ctx context.Context, y, x []float32) error {
	n := l.norm
	if err := n.check(y, x); err != nil {
		return err
	}
	dim := l.Gain.Cols
	centered := sized(&l.centered, len(x))
	parallel.For(len(x)/dim, 16, n.workers, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			n.center(centered[r*dim:(r+1)*dim], x[r*dim:(r+1)*dim])
		}
	})
	return n.Forward(ctx, y, centered)
}

// Backward takes the gradient dy of what the last Forward wrote. It writes that of x to dx,
// which must not overlap dy, and adds those of gain and bias to Gain.Grad and Bias.Grad.
func (l *LayerNorm) Backward(ctx context.Context, dx, dy []float32) error {
	return l.norm.Backward(ctx, dx, dy)
}

// center writes x less its mean to y.
func (n *RMSNorm) center(y, x []float32) {
	mean := n.sums.total(0, x) / float32(len(x))
	for i, v := range x {
		y[i] = v - mean
	}
}
