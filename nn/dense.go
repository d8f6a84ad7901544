package nn

import "github.com/octavo-fp8/octavo/swiglu"

// dense multiplies by a weight, [out, in], forward and backward.
type dense struct {
	weight   *Param
	products products
	workers  int
	scratch  *scratch

	// scales, where there are any, are folded into the weight's columns.
	scales swiglu.Scales
}

func newDense(weight *Param, workers int, s *scratch) dense {
	return dense{weight: weight, products: &fp32Products{workers, s}, workers: workers, scratch: s}
}

func (d *dense) shape(rows int) shape { return shape{rows, d.weight.Rows, d.weight.Cols} }

// forward writes x·Wᵀ to y; x is [rows, in] and y [rows, out].
func (d *dense) forward(y, x []float32, rows int) error {
	return d.products.forward(y, x, d.effectiveWeight(), d.shape(rows))
}

// effectiveWeight returns the weight as it is multiplied.
func (d *dense) effectiveWeight() []float32 {
	if d.scales.Values == nil {
		return d.weight.Value
	}
	folded := sized(&d.scratch.folded, len(d.weight.Value))
	swiglu.FoldDown(folded, d.weight.Value, d.scales)
	return folded
}

// backward writes dy·W to dx and adds dyᵀ·x to the gradient of W.
func (d *dense) backward(dx, dy, x []float32, rows int) error {
	if err := d.products.inputGradient(dx, dy, d.effectiveWeight(), d.shape(rows)); err != nil {
		return err
	}
	dWeight := sized(&d.scratch.dWeight, len(d.weight.Grad))
	if err := d.products.weightGradient(dWeight, dy, x, d.shape(rows)); err != nil {
		return err
	}
	swiglu.FoldDown(dWeight, dWeight, d.scales)
	add(d.weight.Grad, d.weight.Grad, dWeight, d.workers)
	return nil
}
