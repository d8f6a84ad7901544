package nn

import (
	"context"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// fp8Products multiplies in FP8 with float32 results: octavo's canonical product
// of operands that are quantized anew each time.
type fp8Products struct {
	layer   string
	workers int
	seeds   *gradientSeeds
	shared  *Shared

	hadamard *scaling.Hadamard // of the weight gradient's operands; nil: none

	// The operands A and B of each product.
	forwardA, forwardB               quantized
	inputGradientA, inputGradientB   quantized
	weightGradientA, weightGradientB quantized

	// What is kept of the input: the operand B of the weight gradient or, in tiles, the
	// operand A of the forward product.
	input tensor.Tensor

	tiles      bool           // as ActivationsDeepSeekV3 says
	tilesAgain bool           // which are not kept: the input is, or is computed again
	made       *tensor.Tensor // operand A of the last forward product
}

// quantized is what quantizes an operand.
type quantized struct {
	name      string
	quantizer scaling.Quantizer
}

// newFP8Products returns the products of a layer under recipes that pass check.
func newFP8Products(layer string, recipes FP8, o Options) (*fp8Products, error) {
	p := &fp8Products{layer: layer, workers: o.Workers, shared: o.Shared, tiles: o.Activations.keepsTiles()}
	for i, operand := range recipes.operands() {
		name := layer + "." + operand.tensor
		q := p.operand(i)
		q.name = name
		q.quantizer = scaling.Quantizer{Recipe: operand.recipe, Options: tensor.Options{Op: operand.op, Workers: o.Workers}}
		if operand.recipe.Profile.Delayed() {
			var err error
			if q.quantizer.History, err = o.Shared.scaling.history(name+" "+operand.op, operand.recipe); err != nil {
				return nil, err
			}
		}
	}
	if recipes.Stochastic {
		p.seeds = newGradientSeeds(layer, recipes.Seed, &o.Shared.scaling)
	}
	if recipes.Hadamard {
		p.hadamard = &scaling.Hadamard{Signs: recipes.Signs, Workers: o.Workers}
	}
	return p, nil
}

// operand returns the operand that FP8.operands lists at index i.
func (p *fp8Products) operand(i int) *quantized {
	return [...]*quantized{
		&p.forwardA, &p.forwardB,
		&p.inputGradientA, &p.inputGradientB,
		&p.weightGradientA, &p.weightGradientB,
	}[i]
}

func (p *fp8Products) forward(ctx context.Context, y, x, w []float32, s shape, common *commonInput) error {
	g, err := p.forwardOperands(ctx, &p.shared.scratch.operandPair, x, w, s, common)
	if err != nil {
		return err
	}
	if err := p.product(ctx, y, g); err != nil {
		return err
	}
	p.showForward(y, x, w, g)
	return nil
}

// operandPair is memory of the two operands of a product.
type operandPair struct{ a, b tensor.Tensor }

// forwardOperands quantizes x and w.
func (p *fp8Products) forwardOperands(
	ctx context.Context, m *operandPair, x, w []float32, s shape, common *commonInput,
) (g gemm.Product, err error) {
	if g.A, err = p.forwardInput(ctx, m, x, s, common); err != nil {
		return g, err
	}
	p.made = g.A
	g.Name = p.result("output")
	g.B, err = p.forwardB.quantize(ctx, p.shared, &m.b, w, s.out, s.in)
	return g, err
}

// forwardInput quantizes x.
func (p *fp8Products) forwardInput(
	ctx context.Context, m *operandPair, x []float32, s shape, common *commonInput,
) (*tensor.Tensor, error) {
	if common == nil || p.forwardA.hasCodesOfItsOwn() {
		return p.forwardA.quantize(ctx, p.shared, &m.a, x, s.rows, s.in)
	}
	return common.forward.quantize(ctx, &p.forwardA, p.shared, func() ([]float32, error) { return x, nil }, s.rows, s.in)
}

func (p *fp8Products) inputGradient(ctx context.Context, dx, dy, w []float32, s shape) error {
	g, err := p.inputGradientOperands(ctx, &p.shared.scratch.operandPair, dy, w, s)
	if err != nil {
		return err
	}
	if err := p.product(ctx, dx, g); err != nil {
		return err
	}
	p.showInputGradient(dx, dy, w, g, s)
	return nil
}

// inputGradientOperands quantizes dy and wᵀ.
func (p *fp8Products) inputGradientOperands(
	ctx context.Context, m *operandPair, dy, w []float32, s shape,
) (g gemm.Product, err error) {
	p.seeds.begin()
	p.inputGradientA.seed(p.seeds)
	if g.A, err = p.inputGradientA.quantize(ctx, p.shared, &m.a, dy, s.rows, s.out); err != nil {
		return g, err
	}
	g.Name = p.result("input_gradient")
	wT := transposed(&p.shared.scratch.wT, w, s.out, s.in, p.workers)
	g.B, err = p.inputGradientB.quantize(ctx, p.shared, &m.b, wT, s.in, s.out)
	return g, err
}

func (p *fp8Products) weightGradient(ctx context.Context, dw, dy, x []float32, kept *tensor.Tensor, s shape, common *commonInput) error {
	g, err := p.weightGradientOperands(ctx, &p.shared.scratch.operandPair, dy, x, kept, s, common)
	if err != nil {
		return err
	}
	if err := p.product(ctx, dw, g); err != nil {
		return err
	}
	return p.showWeightGradient(ctx, dw, dy, x, kept, g, s)
}

// weightGradientOperands quantizes dyᵀ, and xᵀ unless that was kept.
func (p *fp8Products) weightGradientOperands(
	ctx context.Context, m *operandPair, dy, x []float32, kept *tensor.Tensor, s shape, common *commonInput,
) (g gemm.Product, err error) {
	dyT, err := p.alongTokens(ctx, &p.shared.scratch.dyT, dy, s.rows, s.out)
	if err != nil {
		return g, err
	}
	p.weightGradientA.seed(p.seeds)
	if g.A, err = p.weightGradientA.quantize(ctx, p.shared, &m.a, dyT, s.out, s.rows); err != nil {
		return g, err
	}
	g.Name = p.result("weight_gradient")
	if g.B, err = p.inputAlongTokens(ctx, m, x, kept, s, common); err != nil {
		return g, err
	}
	g.B.Name = p.weightGradientB.name // it may be what layers have in common
	return g, nil
}

// inputAlongTokens returns xᵀ, which is made of x or of what was kept of it.
func (p *fp8Products) inputAlongTokens(
	ctx context.Context, m *operandPair, x []float32, kept *tensor.Tensor, s shape, common *commonInput,
) (*tensor.Tensor, error) {
	if kept != nil && !p.tiles {
		return kept, nil
	}
	values := func() ([]float32, error) {
		return p.keptInput(ctx, &p.shared.scratch.decoded, &m.b, x, kept, s)
	}
	return p.transposedInput(ctx, &m.b, values, s, common)
}

// keptInput returns x, or what tiles have of it: those that were kept or, where they are made
// again, as the forward product had them. It takes memory of values and of a tensor.
func (p *fp8Products) keptInput(
	ctx context.Context, buf *[]float32, t *tensor.Tensor, x []float32, kept *tensor.Tensor, s shape,
) ([]float32, error) {
	if kept == nil && p.tilesAgain {
		kept = t
		err := p.shared.repeat(func() error {
			_, err := p.forwardA.quantize(ctx, p.shared, t, x, s.rows, s.in)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if kept == nil {
		return x, nil
	}
	decoded := sized(buf, kept.Len())
	dequantize(decoded, kept, p.workers)
	return decoded, nil
}

// keep returns what is kept of the input of the last forward product: a copy of that
// product's operand, or the input quantized for the weight gradient.
func (p *fp8Products) keep(ctx context.Context, x []float32, s shape, common *commonInput) (*tensor.Tensor, error) {
	switch {
	case !p.tiles:
		return p.transposedInput(ctx, &p.input, func() ([]float32, error) { return x, nil }, s, common)
	case common == nil || p.forwardA.hasCodesOfItsOwn():
		copyTensor(&p.input, p.made)
		return &p.input, nil
	}
	return common.keepForward(), nil
}

// copyTensor makes dst a copy of src in memory of its own, which it may have already.
func copyTensor(dst, src *tensor.Tensor) {
	memory := *dst
	*dst = *src
	dst.Shape = append(memory.Shape[:0], src.Shape...)
	dst.Codes = append(memory.Codes[:0], src.Codes...)
	dst.Scales = append(memory.Scales[:0], src.Scales...)
	dst.Outer.Scales = append(memory.Outer.Scales[:0], src.Outer.Scales...)
}

// dequantize writes the values of t to dst.
func dequantize(dst []float32, t *tensor.Tensor, workers int) {
	rows, cols := t.Dims()
	gridRows, _ := t.Grid()
	blockRows, _ := t.Block.Extents(rows, cols)
	parallel.For(gridRows, max(elementGrain/max(blockRows*cols, 1), 1), workers, func(lo, hi int) {
		lo, hi = lo*blockRows, min(hi*blockRows, rows)
		part, err := t.RowRange(lo, hi)
		if err != nil {
			panic(err) // lo is where a block starts
		}
		tensor.Dequantize(dst[lo*cols:hi*cols], part)
	})
}

// hasCodesOfItsOwn reports whether layers with the same recipe may make different
// codes of the same input: histories and draws are each layer's own.
func (q *quantized) hasCodesOfItsOwn() bool {
	r := q.quantizer.Recipe
	return r.Profile.Delayed() || r.Policy.Rounding == fp8.Stochastic
}

// transposedInput quantizes xᵀ for the weight gradient, to t or to what layers have in
// common, unless the codes of each may differ.
func (p *fp8Products) transposedInput(
	ctx context.Context, t *tensor.Tensor, x func() ([]float32, error), s shape, common *commonInput,
) (*tensor.Tensor, error) {
	xT := func() ([]float32, error) {
		values, err := x()
		if err != nil {
			return nil, err
		}
		return p.alongTokens(ctx, &p.shared.scratch.xT, values, s.rows, s.in)
	}
	if common == nil || p.weightGradientB.hasCodesOfItsOwn() {
		values, err := xT()
		if err != nil {
			return nil, err
		}
		return p.weightGradientB.quantize(ctx, p.shared, t, values, s.in, s.rows)
	}
	return common.transposed.quantize(ctx, &p.weightGradientB, p.shared, xT, s.in, s.rows)
}

// alongTokens returns the transpose of values, [rows, cols], for a product that sums over
// rows: transformed, where the recipes say so.
func (p *fp8Products) alongTokens(ctx context.Context, buf *[]float32, values []float32, rows, cols int) ([]float32, error) {
	t := transposed(buf, values, rows, cols, p.workers)
	if p.hadamard == nil {
		return t, nil
	}
	return t, scaling.HadamardTransform(ctx, t, t, cols, rows, *p.hadamard)
}

// product writes a product to c.
func (p *fp8Products) product(ctx context.Context, c []float32, g gemm.Product) error {
	o := gemm.Options{Workers: p.workers, Reporter: p.shared.reporter(), Name: g.Name}
	return gemm.Multiply(ctx, c, g.A, g.B, o)
}

// result returns the name of a result, where somebody hears of it.
func (p *fp8Products) result(which string) string {
	if p.shared.reporter() == nil {
		return ""
	}
	return p.layer + "." + which
}

// seed gives the next rounding of a gradient its seed, if it needs one.
func (q *quantized) seed(s *gradientSeeds) {
	r := &q.quantizer.Recipe
	r.Policy = s.policy(r.Policy, q.quantizer.Op)
}

// quantize makes t the operand of values, [rows, cols], and returns it.
func (q *quantized) quantize(ctx context.Context, s *Shared, t *tensor.Tensor, values []float32, rows, cols int) (*tensor.Tensor, error) {
	return q.quantizeFor(ctx, s, s.reporter(), t, values, rows, cols)
}

// quantizeFor is quantize where r, unless nil, hears of it.
func (q *quantized) quantizeFor(ctx context.Context, s *Shared, r tensor.Reporter, t *tensor.Tensor, values []float32, rows, cols int) (*tensor.Tensor, error) {
	t.Name, t.Shape = q.name, append(t.Shape[:0], rows, cols)
	quantizer := q.quantizer
	quantizer.Reporter, quantizer.Frozen = r, !s.training() || s.again
	return t, scaling.Quantize(ctx, t, values, quantizer)
}
