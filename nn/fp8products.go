package nn

import (
	"context"
	"strings"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// fp8Products multiplies in FP8 with float32 results: octavo's canonical product
// of operands that are quantized anew each time.
type fp8Products struct {
	layer    string // name of the weight without ".weight"
	workers  int
	reporter tensor.Reporter
	seeds    *gradientSeeds
	scratch  *scratch

	// The operands A and B of each product.
	forwardA, forwardB               quantized
	inputGradientA, inputGradientB   quantized
	weightGradientA, weightGradientB quantized

	// The operand B of the weight gradient where it was quantized in the forward
	// pass: input, or that of another layer.
	kept  *tensor.Tensor
	input tensor.Tensor
}

// quantized is what quantizes an operand.
type quantized struct {
	name      string
	quantizer scaling.Quantizer
}

// newFP8Products returns the products of a layer under recipes that pass check;
// histories are those of the model.
func newFP8Products(weight string, recipes FP8, histories *scaling.Histories, workers int, s *scratch) (*fp8Products, error) {
	p := &fp8Products{layer: strings.TrimSuffix(weight, ".weight"), workers: workers, scratch: s}
	for i, o := range recipes.operands() {
		name := p.layer + "." + o.tensor
		q := p.operand(i)
		q.name = name
		q.quantizer = scaling.Quantizer{Recipe: o.recipe, Options: tensor.Options{Op: o.op, Workers: parallel.Workers(workers)}}
		if o.recipe.Profile.Delayed() {
			var err error
			if q.quantizer.History, err = histories.Get(name+" "+o.op, o.recipe); err != nil {
				return nil, err
			}
		}
	}
	if recipes.Stochastic {
		p.seeds = &gradientSeeds{layer: p.layer, seed: recipes.Seed}
	}
	return p, nil
}

func (p *fp8Products) setPass(n uint64) { p.seeds.setPass(n) }

// operand returns the operand that FP8.operands lists at index i.
func (p *fp8Products) operand(i int) *quantized {
	return [...]*quantized{
		&p.forwardA, &p.forwardB,
		&p.inputGradientA, &p.inputGradientB,
		&p.weightGradientA, &p.weightGradientB,
	}[i]
}

// listen makes r hear of every operand and result from now on; nil is nobody.
func (p *fp8Products) listen(r tensor.Reporter) {
	p.reporter = r
	for i := range (FP8{}).operands() {
		p.operand(i).quantizer.Reporter = r
	}
}

func (p *fp8Products) forward(y, x, w []float32, s shape) error {
	p.kept = nil
	return p.multiply(y, "output", &p.forwardA, x, &p.forwardB, w, s.rows, s.out, s.in)
}

func (p *fp8Products) inputGradient(dx, dy, w []float32, s shape) error {
	wT := transposed(&p.scratch.wT, w, s.out, s.in, p.workers)
	p.inputGradientA.seed(p.seeds)
	return p.multiply(dx, "input_gradient", &p.inputGradientA, dy, &p.inputGradientB, wT, s.rows, s.in, s.out)
}

func (p *fp8Products) weightGradient(dw, dy, x []float32, s shape) error {
	dyT := transposed(&p.scratch.dyT, dy, s.rows, s.out, p.workers)
	p.weightGradientA.seed(p.seeds)
	defer p.seeds.endPass()
	a, err := p.weightGradientA.quantize(&p.scratch.a, dyT, s.out, s.rows)
	if err != nil {
		return err
	}
	b := p.kept
	if b == nil {
		if b, err = p.quantizeInput(&p.scratch.b, x, s); err != nil {
			return err
		}
	}
	return p.product(dw, "weight_gradient", a, b)
}

// quantizeInput quantizes xᵀ for the weight gradient.
func (p *fp8Products) quantizeInput(t *tensor.Tensor, x []float32, s shape) (*tensor.Tensor, error) {
	xT := transposed(&p.scratch.xT, x, s.rows, s.in, p.workers)
	return p.weightGradientB.quantize(t, xT, s.in, s.rows)
}

// multiply quantizes a, [m, k], and b, [n, k], and writes their product to c.
func (p *fp8Products) multiply(c []float32, result string, qa *quantized, a []float32, qb *quantized, b []float32, m, n, k int) error {
	ta, err := qa.quantize(&p.scratch.a, a, m, k)
	if err != nil {
		return err
	}
	tb, err := qb.quantize(&p.scratch.b, b, n, k)
	if err != nil {
		return err
	}
	return p.product(c, result, ta, tb)
}

// product writes the product of operands to c.
func (p *fp8Products) product(c []float32, result string, a, b *tensor.Tensor) error {
	o := gemm.Options{Workers: p.workers, Reporter: p.reporter}
	if p.reporter != nil {
		o.Name = p.layer + "." + result
	}
	return gemm.Multiply(context.Background(), c, a, b, o)
}

// seed gives the next rounding of a gradient its seed, if it needs one.
func (q *quantized) seed(s *gradientSeeds) {
	r := &q.quantizer.Recipe
	r.Policy = s.policy(r.Policy, q.quantizer.Op)
}

// quantize makes t the operand of values, [rows, cols], and returns it.
func (q *quantized) quantize(t *tensor.Tensor, values []float32, rows, cols int) (*tensor.Tensor, error) {
	t.Name, t.Shape = q.name, append(t.Shape[:0], rows, cols)
	return t, scaling.Quantize(context.Background(), t, values, q.quantizer)
}
