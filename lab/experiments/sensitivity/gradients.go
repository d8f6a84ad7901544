package sensitivity

import (
	"context"
	"math"

	"github.com/octavo-fp8/octavo/nn"
)

// gradientError is how far gradients of a parameter are from those of FP32, over batches: by
// sums over all of their values, so that a batch whose gradient nearly vanishes counts as
// little as it is.
type gradientError struct {
	off   float64 // squares of the differences
	got   float64 // squares
	want  float64 // squares of FP32's
	along float64 // products of the differences with FP32's
}

// add counts the gradients of a batch.
func (e *gradientError) add(got, want []float32) {
	for i, v := range want {
		x, y := float64(got[i]), float64(v)
		d := x - y
		e.off += float64(d * d)
		e.got += float64(x * x)
		e.want += float64(y * y)
		e.along += float64(d * y)
	}
}

// relative is the length of the error over that of FP32's gradient; 0 if that is zero, as the
// other figures are.
func (e gradientError) relative() float64 {
	if e.want == 0 {
		return 0
	}
	return math.Sqrt(e.off / e.want)
}

// distance is 1 less the cosine of the angle between both, and 1 if nothing is left of one.
func (e gradientError) distance() float64 {
	switch {
	case e.want == 0:
		return 0
	case e.got == 0:
		return 1
	}
	return 1 - (e.want+e.along)/math.Sqrt(e.got*e.want)
}

// bias is the projection of the gradient on FP32's, less 1.
func (e gradientError) bias() float64 {
	if e.want == 0 {
		return 0
	}
	return e.along / e.want
}

// gradients computes those of a batch; the parameters have them then.
func gradients(ctx context.Context, m *nn.Llama, b batch) error {
	m.ZeroGrad()
	if _, err := m.Loss(ctx, b.tokens, b.targets, b.sequences, b.seq); err != nil {
		return err
	}
	return m.Backward(ctx)
}
