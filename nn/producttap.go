package nn

import (
	"context"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// ProductTap sees a product of a linear layer in FP8, once it is computed. What it sees is
// the layer's memory: to be read during the call, and neither changed nor kept.
type ProductTap func(p Product)

// Product is A·Bᵀ as a layer computed it, of A [rows, sum] and B [cols, sum].
type Product struct {
	Name   string // of the result, such as "up_proj.output", "up_proj.weight_gradient"
	Op     string // "forward", "input-gradient" or "weight-gradient"
	A, B   ProductOperand
	Result []float32 // [rows, cols], row-major
}

// ProductOperand is what was multiplied, and what it was made of.
type ProductOperand struct {
	Tensor *tensor.Tensor
	Recipe scaling.Recipe // that made it, with the seed of a rounding at random

	// Values are what was quantized, transposed and transformed as it was for this product;
	// nil where nothing but codes was kept of them.
	Values []float32

	// Multipliers are what values were multiplied by, for each scale of the tensor, where
	// they follow from a history and not from the values.
	Multipliers []float32
}

// seen says what the operands of a product were made of.
type seen struct{ a, b []float32 }

// show shows a product to the tap.
func (p *fp8Products) show(
	which, op string, a, b *quantized, g gemm.Product, made seen, result []float32,
) {
	p.shared.ProductTap(Product{
		Name: p.layer + "." + which, Op: op,
		A: a.seen(g.A, made.a), B: b.seen(g.B, made.b), Result: result,
	})
}

// watched reports whether somebody sees products.
func (p *fp8Products) watched() bool {
	return p.shared.ProductTap != nil && p.shared.training() && !p.shared.again
}

// seen returns the operand t, made of values.
func (q *quantized) seen(t *tensor.Tensor, values []float32) ProductOperand {
	o := ProductOperand{Tensor: t, Recipe: q.quantizer.Recipe, Values: values}
	if h := q.quantizer.History; h != nil && len(values) > 0 {
		for block := range t.Scales {
			o.Multipliers = append(o.Multipliers, h.Scale(block).Multiplier)
		}
	}
	return o
}

// showForward shows the product of x and w.
func (p *fp8Products) showForward(y, x, w []float32, g gemm.Product) {
	if p.watched() {
		p.show("output", opForward, &p.forwardA, &p.forwardB, g, seen{x, w}, y)
	}
}

// showInputGradient shows the product of dy and wᵀ.
func (p *fp8Products) showInputGradient(dx, dy, w []float32, g gemm.Product, s shape) {
	if !p.watched() {
		return
	}
	var wT []float32
	made := seen{dy, transposed(&wT, w, s.out, s.in, p.workers)}
	p.show("input_gradient", opInputGradient, &p.inputGradientA, &p.inputGradientB, g, made, dx)
}

// showWeightGradient shows the product of dyᵀ and xᵀ, which are made again for it.
func (p *fp8Products) showWeightGradient(
	ctx context.Context, dw, dy, x []float32, kept *tensor.Tensor, g gemm.Product, s shape,
) error {
	if !p.watched() {
		return nil
	}
	var dyT, xT []float32
	made := seen{}
	var err error
	if made.a, err = p.alongTokens(ctx, &dyT, dy, s.rows, s.out); err != nil {
		return err
	}
	if kept == nil || p.tiles {
		var decoded []float32
		if x, err = p.keptInput(ctx, &decoded, new(tensor.Tensor), x, kept, s); err != nil {
			return err
		}
		if made.b, err = p.alongTokens(ctx, &xT, x, s.rows, s.in); err != nil {
			return err
		}
	}
	p.show("weight_gradient", opWeightGradient, &p.weightGradientA, &p.weightGradientB, g, made, dw)
	return nil
}
