package nn

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// keepInput has layers of a model that were given the same input keep it in FP8 for
// their weight gradients, as one tensor if possible: none reads the input again.
func keepInput(layers ...*Linear) error {
	for _, l := range layers {
		if err := l.keep(layers[0]); err != nil {
			return err
		}
	}
	return nil
}

// keep replaces the input by the operand of the weight gradient, which is first's
// where that is the same. The layer must multiply in FP8.
func (l *Linear) keep(first *Linear) error {
	p := l.dense.products.(*fp8Products)
	if err := p.keep(l.x, l.dense.shape(l.rows), first.dense.products.(*fp8Products)); err != nil {
		return err
	}
	l.x = nil
	return nil
}

// kept returns the operand that keep kept, or nil.
func (l *Linear) kept() *tensor.Tensor {
	if p, ok := l.dense.products.(*fp8Products); ok {
		return p.kept
	}
	return nil
}

func (p *fp8Products) keep(x []float32, s shape, first *fp8Products) (err error) {
	if p == first || p.weightGradientB.hasCodesOfItsOwn() {
		p.kept, err = p.quantizeInput(&p.input, x, s)
		return err
	}
	p.kept = first.kept
	if p.reporter != nil { // who is to hear of it under this layer's name too
		_, err = p.quantizeInput(&p.scratch.b, x, s)
	}
	return err
}

// hasCodesOfItsOwn reports whether layers with the same recipe may make different
// codes of the same input: histories and draws are each layer's own.
func (q *quantized) hasCodesOfItsOwn() bool {
	r := q.quantizer.Recipe
	return r.Profile.Delayed() || r.Policy.Rounding == fp8.Stochastic
}
