package train

import (
	"fmt"

	"github.com/octavo-fp8/octavo/swiglu"
)

// Linear is a matrix product without bias, y = x·Wᵀ, in FP32 or, where
// Config.FP8 says so, in FP8. Its master weight is FP32.
type Linear struct {
	Weight *Param // [out, in]

	dense dense
	x     []float32 // what Forward was given
	rows  int
}

// newLinear returns a Linear of zeros.
func newLinear(name string, out, in int, cfg Config) *Linear {
	weight := newParam(name, out, in)
	return &Linear{Weight: weight, dense: newDense(weight, cfg.Workers)}
}

// Forward writes x·Wᵀ to y, where x is [rows, in] and y is [rows, out]; they must
// not overlap. It keeps x, which must stay as it is until [Linear.Backward].
func (l *Linear) Forward(y, x []float32, rows int) error {
	if len(x) != rows*l.Weight.Cols || len(y) != rows*l.Weight.Rows {
		return fmt.Errorf("train: %s, [%d, %d]: an input of %d and an output of %d elements are not %d rows",
			l.Weight.Name, l.Weight.Rows, l.Weight.Cols, len(x), len(y), rows)
	}
	l.x, l.rows = x, rows
	return l.dense.forward(y, x, rows)
}

// Backward takes the gradient dy, [rows, out], of what the last Forward wrote. It
// writes the gradient of x, dy·W, to dx, [rows, in], and adds that of the weight,
// dyᵀ·x, to Weight.Grad. dx must not overlap dy or x.
func (l *Linear) Backward(dx, dy []float32) error {
	if len(dx) != l.rows*l.Weight.Cols || len(dy) != l.rows*l.Weight.Rows {
		return fmt.Errorf("train: %s, [%d, %d]: gradients of %d input and %d output elements are not the %d rows of Forward",
			l.Weight.Name, l.Weight.Rows, l.Weight.Cols, len(dx), len(dy), l.rows)
	}
	return l.dense.backward(dx, dy, l.x, l.rows)
}

// fold makes the following calls multiply by W/s along in, where s are scales per
// channel; others, and none, leave W as it is. The gradient stays that of W.
func (l *Linear) fold(s swiglu.Scales) {
	if s.Axis == swiglu.PerToken {
		s = swiglu.Scales{}
	}
	l.dense.scales = s
}
