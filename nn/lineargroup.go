package nn

import (
	"context"
	"strconv"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/swiglu"
)

// linearGroup are linear layers of the same shape and options, one of each expert. Each
// multiplies rows of its own, which follow one another in a matrix that is sorted by expert,
// and what it computes, reports and keeps is what it would by itself. In FP8 the products
// of all are one grouped product.
type linearGroup struct {
	layers   []*Linear
	shared   *Shared
	workers  int
	products []gemm.Product // memory
}

// newLinearGroup adds layers named prefix, "0.", "1." and so on, and suffix.
func newLinearGroup(experts int, prefix, suffix string, out, in int, bias bool, o Options) (*linearGroup, error) {
	g := &linearGroup{shared: o.Shared, workers: o.Workers}
	for e := range experts {
		name := prefix + strconv.Itoa(e) + "." + suffix
		l, err := newLinear(name, o.Shared.newMatrix(name, out, in), o)
		if err != nil {
			return nil, err
		}
		l.addBiasIf(bias)
		g.layers = append(g.layers, l)
	}
	return g, nil
}

// grouped reports whether the products of all layers are one.
func (g *linearGroup) grouped() bool {
	_, ok := g.layers[0].products.(*fp8Products)
	return ok
}

// each calls do for each layer, with where its rows begin and how many it has.
func (g *linearGroup) each(counts []int, do func(e, first, rows int, l *Linear) error) error {
	first := 0
	for e, l := range g.layers {
		if err := do(e, first, counts[e], l); err != nil {
			return err
		}
		first += counts[e]
	}
	return nil
}

// rowsOf returns rows of x, [.., cols].
func rowsOf(x []float32, first, rows, cols int) []float32 {
	return x[first*cols : (first+rows)*cols]
}

// input returns the rows of a layer in what goes into a group, and output in what comes out.
func (l *Linear) input(x []float32, first, rows int) []float32 {
	return rowsOf(x, first, rows, l.Weight.Cols)
}

func (l *Linear) output(y []float32, first, rows int) []float32 {
	return rowsOf(y, first, rows, l.Weight.Rows)
}

// commonOf returns the common input of an expert, if there are any.
func commonOf(commons []*commonInput, e int) *commonInput {
	if commons == nil {
		return nil
	}
	return commons[e]
}

// multiply writes the products of x, counts[e] rows of each expert e, to y. It keeps nothing
// for the backward pass.
func (g *linearGroup) multiply(
	ctx context.Context, y, x []float32, counts []int, commons []*commonInput,
) error {
	if !g.grouped() {
		return g.each(counts, func(e, first, rows int, l *Linear) error {
			y, x := l.output(y, first, rows), l.input(x, first, rows)
			return l.multiply(ctx, y, x, rows, swiglu.Scales{}, commonOf(commons, e))
		})
	}
	g.products = g.products[:0]
	err := g.each(counts, func(e, first, rows int, l *Linear) error {
		x := l.input(x, first, rows)
		if err := l.begin(ctx, l.output(y, first, rows), x, rows, swiglu.Scales{}); err != nil {
			return err
		}
		p, m := l.products.(*fp8Products), &g.shared.scratch.expert(e).operandPair
		return g.add(p.forwardOperands(ctx, m, x, l.Weight.Value, l.shape(rows), commonOf(commons, e)))
	})
	if err != nil {
		return err
	}
	if err := g.run(ctx, y); err != nil {
		return err
	}
	return g.each(counts, func(e, first, rows int, l *Linear) error {
		x, y := l.input(x, first, rows), l.output(y, first, rows)
		l.products.(*fp8Products).showForward(y, x, l.Weight.Value, g.products[e])
		l.addBias(y)
		g.shared.tap(l.layer, ".output", y, rows)
		return nil
	})
}

// add adds a product unless its operands could not be made.
func (g *linearGroup) add(p gemm.Product, err error) error {
	g.products = append(g.products, p)
	return err
}

// run computes the products.
func (g *linearGroup) run(ctx context.Context, c []float32) error {
	o := gemm.Options{Workers: g.workers, Reporter: g.shared.reporter()}
	return gemm.Grouped(ctx, c, g.products, o)
}

// keep keeps the input for the backward pass. It follows multiply at once.
func (g *linearGroup) keep(ctx context.Context, x []float32, counts []int, commons []*commonInput) error {
	return g.each(counts, func(e, first, rows int, l *Linear) error {
		return l.keep(ctx, l.input(x, first, rows), rows, commonOf(commons, e))
	})
}

// restore gives the backward pass the input in FP32.
func (g *linearGroup) restore(x []float32, counts []int) {
	first := 0
	for e, l := range g.layers {
		l.restore(l.input(x, first, counts[e]), counts[e])
		first += counts[e]
	}
}

// backward takes the gradient dy of what multiply gave, writes that of x to dx, and adds
// those of the weights to their Grad.
func (g *linearGroup) backward(
	ctx context.Context, dx, dy []float32, counts []int, commons []*commonInput,
) error {
	if !g.grouped() {
		return g.each(counts, func(e, first, rows int, l *Linear) error {
			dx, dy := l.input(dx, first, rows), l.output(dy, first, rows)
			return l.backward(ctx, dx, dy, commonOf(commons, e))
		})
	}
	if err := g.inputGradients(ctx, dx, dy, counts); err != nil {
		return err
	}
	return g.addWeightGradients(ctx, dy, counts, commons)
}

func (g *linearGroup) inputGradients(ctx context.Context, dx, dy []float32, counts []int) error {
	g.products = g.products[:0]
	err := g.each(counts, func(e, first, rows int, l *Linear) error {
		dy := l.output(dy, first, rows)
		if err := l.beginBackward(ctx, l.input(dx, first, rows), dy); err != nil {
			return err
		}
		p, m := l.products.(*fp8Products), &g.shared.scratch.expert(e).operandPair
		return g.add(p.inputGradientOperands(ctx, m, dy, l.Weight.Value, l.shape(rows)))
	})
	if err != nil {
		return err
	}
	if err := g.run(ctx, dx); err != nil {
		return err
	}
	return g.each(counts, func(e, first, rows int, l *Linear) error {
		dx, dy, s := l.input(dx, first, rows), l.output(dy, first, rows), l.shape(rows)
		l.products.(*fp8Products).showInputGradient(dx, dy, l.Weight.Value, g.products[e], s)
		g.shared.tap(l.layer, ".input_gradient", dx, rows)
		return nil
	})
}

func (g *linearGroup) addWeightGradients(
	ctx context.Context, dy []float32, counts []int, commons []*commonInput,
) error {
	g.products = g.products[:0]
	err := g.each(counts, func(e, first, rows int, l *Linear) error {
		p, m := l.products.(*fp8Products), &g.shared.scratch.expert(e).operandPair
		dy, common := l.output(dy, first, rows), commonOf(commons, e)
		return g.add(p.weightGradientOperands(ctx, m, dy, l.x, l.kept, l.shape(rows), common))
	})
	if err != nil {
		return err
	}
	size := len(g.layers[0].Weight.Grad)
	dWeights := sized(&g.shared.scratch.dWeight, len(g.layers)*size)
	if err := g.run(ctx, dWeights); err != nil {
		return err
	}
	return g.each(counts, func(e, first, rows int, l *Linear) error {
		dw, dy := dWeights[e*size:(e+1)*size], l.output(dy, first, rows)
		p, s := l.products.(*fp8Products), l.shape(rows)
		if err := p.showWeightGradient(ctx, dw, dy, l.x, l.kept, g.products[e], s); err != nil {
			return err
		}
		add(l.Weight.Grad, l.Weight.Grad, dw, g.workers)
		l.addBiasGradient(dy)
		l.x = nil
		return nil
	})
}
