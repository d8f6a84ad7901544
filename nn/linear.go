package nn

import (
	"fmt"

	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

// Linear is a matrix product without bias, y = x·Wᵀ, in FP32 or, where
// Config.FP8 says so, in FP8, or of operands that Config.Rounding rounds. Its master
// weight is FP32.
type Linear struct {
	Weight *Param // [out, in]

	dense dense
	x     []float32 // what Forward was given; nil after keep
	rows  int
}

// LinearOptions of a layer on its own. The zero value is FP32.
type LinearOptions struct {
	FP8       *FP8               // recipes of the three products; nil: FP32
	Rounding  *Rounding          // of the operands of products in FP32, if not nil
	Histories *scaling.Histories // required by delayed recipes; its Update ends a step
	Workers   int                // goroutines; 0: GOMAXPROCS. Results do not depend on it.
}

// NewLinear returns a layer whose weight, [out, in], is zero, to be filled in.
// Name is that of the weight, such as "up_proj.weight". It is an error if a size
// is not positive, a recipe or Rounding cannot be used, both are given, or a delayed
// recipe lacks Histories.
func NewLinear(name string, out, in int, o LinearOptions) (*Linear, error) {
	if out <= 0 || in <= 0 || o.Workers < 0 {
		return nil, fmt.Errorf("nn: %s, [%d, %d], %d workers: sizes must be positive and workers not negative", name, out, in, o.Workers)
	}
	l := newLinear(name, out, in, Config{Workers: o.Workers}, new(scratch))
	if err := checkProducts("LinearOptions", o.FP8, o.Rounding); err != nil {
		return nil, err
	}
	if o.Rounding != nil {
		l.useRounding(*o.Rounding)
	}
	if o.FP8 == nil {
		return l, nil
	}
	if o.FP8.delayed() && o.Histories == nil {
		return nil, fmt.Errorf("nn: %s: a delayed recipe needs LinearOptions.Histories, whose Update ends each step", name)
	}
	return l, l.useFP8(*o.FP8, o.Histories)
}

// newLinear returns a Linear of zeros.
func newLinear(name string, out, in int, cfg Config, s *scratch) *Linear {
	weight := NewParam(name, out, in)
	return &Linear{Weight: weight, dense: newDense(weight, cfg.Workers, s)}
}

// useFP8 makes the layer multiply in FP8 under recipes that pass check.
func (l *Linear) useFP8(recipes FP8, histories *scaling.Histories) error {
	p, err := newFP8Products(l.Weight.Name, recipes, histories, l.dense.workers, l.dense.scratch)
	if err != nil {
		return err
	}
	l.dense.products = p
	return nil
}

// useRounding makes the layer round its operands under a Rounding that passes check.
func (l *Linear) useRounding(r Rounding) {
	l.dense.products = newRoundedProducts(l.Weight.Name, r, l.dense.workers, l.dense.scratch)
}

// Listen makes r hear, from now on, of every operand that the layer quantizes and
// of non-finite results; nil, as at first, is nobody, and costs nothing. r must be
// safe for concurrent use. Tensors are named after the weight: "up_proj.input",
// "up_proj.weight" and "up_proj.gradient", under the operations "forward",
// "input-gradient" and "weight-gradient". In FP32 there is nothing to
// hear, and neither is there of a [Rounding], which keeps no account.
func (l *Linear) Listen(r tensor.Reporter) {
	if p, ok := l.dense.products.(*fp8Products); ok {
		p.listen(r)
	}
}

// Forward writes x·Wᵀ to y, where x is [rows, in] and y is [rows, out]; they must
// not overlap. It keeps x, which must stay as it is until [Linear.Backward].
func (l *Linear) Forward(y, x []float32, rows int) error {
	if len(x) != rows*l.Weight.Cols || len(y) != rows*l.Weight.Rows {
		return fmt.Errorf("nn: %s, [%d, %d]: an input of %d and an output of %d elements are not %d rows",
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
		return fmt.Errorf("nn: %s, [%d, %d]: gradients of %d input and %d output elements are not the %d rows of Forward",
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
