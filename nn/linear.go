package nn

import (
	"context"
	"strings"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

// Linear is a matrix product, y = x·Wᵀ + bias, in FP32 or, where its options say so, in
// FP8 or of rounded operands. Its master weight is FP32.
type Linear struct {
	Weight *Param // [out, in]

	// Bias, [1, out], is added to each row of the product in FP32; its gradient is the sum of
	// the rows of the result's, in order. It is nil, none, unless Options.Biases of a layer that is
	// made of linear ones has it, or the caller sets it, before a Forward.
	Bias *Param

	layer    string // its name in taps and reports
	products products
	shared   *Shared
	workers  int

	// scales, where there are any, are folded into the weight's columns.
	scales swiglu.Scales

	keepsFP8 bool // the input in FP8, and not the caller's memory

	x     []float32      // the input, where it is kept in FP32
	kept  *tensor.Tensor // the input in FP8, as the weight gradient multiplies it
	rows  int
	ready bool // Forward was called in training, and Backward not yet
}

// NewLinear returns a layer whose weight, [out, in], is zero, to be filled in. Name
// is that of the weight, such as "up_proj.weight"; histories, taps and reports are
// named after it. The error is [ErrConfig]: a size is not positive or too large, or an
// option cannot be used.
func NewLinear(name string, out, in int, o Options) (*Linear, error) {
	if err := checkMatrix(name, out, in); err != nil {
		return nil, err
	}
	o, err := o.complete("Options")
	if err != nil {
		return nil, err
	}
	return newLinear(name, newParam(name, out, in), o)
}

// NewLinearOf returns a layer that multiplies by a weight which another layer has too,
// such as an output head whose weight is the table of the embedding. Its gradients are
// added to those of the other. Name is not that of the weight, but names the layer.
func NewLinearOf(name string, weight *Param, o Options) (*Linear, error) {
	if err := weight.check(name); err != nil {
		return nil, err
	}
	o, err := o.complete("Options")
	if err != nil {
		return nil, err
	}
	return newLinear(name, weight, o)
}

// newLinear returns a Linear with options that are complete.
func newLinear(name string, weight *Param, o Options) (*Linear, error) {
	l := &Linear{Weight: weight, layer: strings.TrimSuffix(name, ".weight"), shared: o.Shared, workers: o.Workers}
	switch {
	case o.FP8 != nil:
		p, err := newFP8Products(l.layer, *o.FP8, o)
		if err != nil {
			return nil, err
		}
		l.products = p
		l.keepsFP8 = !o.Activations.keepsInputs()
	case o.Rounding != nil:
		l.products = newRoundedProducts(l.layer, *o.Rounding, o)
	default:
		l.products = &fp32Products{o.Workers}
	}
	return l, nil
}

// linearSpec is a layer to be made: where it goes, the name of its weight behind a prefix, its
// size and its options.
type linearSpec struct {
	layer   **Linear
	name    string
	out, in int
	options Options
	bias    bool
}

func newLinears(prefix string, specs ...linearSpec) (err error) {
	for _, p := range specs {
		name := prefix + p.name
		if *p.layer, err = newLinear(name, p.options.Shared.newMatrix(name, p.out, p.in), p.options); err != nil {
			return err
		}
		(*p.layer).addBiasIf(p.bias)
	}
	return nil
}

// addBiasIf gives a layer a bias of zeros.
func (l *Linear) addBiasIf(has bool) {
	if has {
		l.Bias = newParam(l.layer+".bias", 1, l.Weight.Rows)
		l.Bias.Decay = false
	}
}

// paramsOf returns the weights and biases of layers.
func paramsOf(layers ...*Linear) (params []*Param) {
	for _, l := range layers {
		params = append(params, l.Weight)
		if l.Bias != nil {
			params = append(params, l.Bias)
		}
	}
	return params
}

func (p *Param) check(name string) error {
	if p == nil {
		return configError("%s: the parameter is nil", name)
	}
	if err := checkMatrix(name, p.Rows, p.Cols); err != nil {
		return err
	}
	if n := p.Rows * p.Cols; len(p.Value) != n || len(p.Grad) != n {
		return configError("%s: the parameter is [%d, %d] and has %d values and %d gradients", name, p.Rows, p.Cols, len(p.Value), len(p.Grad))
	}
	return nil
}

func (l *Linear) shape(rows int) shape { return shape{rows, l.Weight.Rows, l.Weight.Cols} }

// Forward writes x·Wᵀ to y, where x is [rows, in] and y is [rows, out]; they must
// not overlap. The layer keeps x, which must stay as it is until [Linear.Backward],
// but with FP8 activations, of which it makes a copy in FP8.
func (l *Linear) Forward(ctx context.Context, y, x []float32, rows int) error {
	return l.forward(ctx, y, x, rows, nil)
}

// forward is Forward. Where common is not nil, it is the same input that other layers
// are given.
func (l *Linear) forward(ctx context.Context, y, x []float32, rows int, common *commonInput) error {
	if err := l.multiply(ctx, y, x, rows, swiglu.Scales{}, common); err != nil {
		return err
	}
	return l.keep(ctx, x, rows, common)
}

// multiply is Forward with scales folded into the weight, as fold says. It keeps
// nothing for Backward.
func (l *Linear) multiply(ctx context.Context, y, x []float32, rows int, scales swiglu.Scales, common *commonInput) error {
	if err := l.begin(ctx, y, x, rows, scales); err != nil {
		return err
	}
	if err := l.products.forward(ctx, y, x, l.effectiveWeight(), l.shape(rows), common); err != nil {
		return err
	}
	l.addBias(y)
	l.shared.tap(l.layer, ".output", y, rows)
	return nil
}

// begin begins a forward pass: it forgets the last, unless that is repeated, and checks
// lengths.
func (l *Linear) begin(ctx context.Context, y, x []float32, rows int, scales swiglu.Scales) error {
	if !l.shared.again {
		l.ready, l.x, l.kept = false, nil, nil
		l.fold(scales)
	}
	if !fits(rows, l.Weight.Cols, x) || !fits(rows, l.Weight.Rows, y) {
		return inputError("%s, [%d, %d]: an input of %d and an output of %d elements are not %d rows",
			l.layer, l.Weight.Rows, l.Weight.Cols, len(x), len(y), rows)
	}
	if err := l.checkBias(scales); err != nil {
		return err
	}
	if err := meter.Err(ctx); err != nil {
		return err
	}
	l.shared.tap(l.layer, ".input", x, rows)
	return nil
}

func (l *Linear) checkBias(scales swiglu.Scales) error {
	switch b := l.Bias; {
	case b == nil:
		return nil
	case len(b.Value) != l.Weight.Rows || len(b.Grad) != l.Weight.Rows:
		return inputError("%s, [%d, %d]: the bias %q has %d values and %d gradients", l.layer, l.Weight.Rows, l.Weight.Cols, b.Name, len(b.Value), len(b.Grad))
	case scales.Values != nil:
		return inputError("%s: the bias %q would be divided by the scales of Smooth-SwiGLU", l.layer, b.Name)
	}
	return nil
}

// addBias adds the bias to the result of Forward.
func (l *Linear) addBias(y []float32) {
	if l.Bias == nil {
		return
	}
	out := l.Weight.Rows
	if len(y) <= elementGrain { // so that a token takes no closure
		l.addBiasTo(y)
		return
	}
	parallel.For(len(y)/out, max(elementGrain/out, 1), l.workers, func(lo, hi int) { l.addBiasTo(y[lo*out : hi*out]) })
}

func (l *Linear) addBiasTo(y []float32) {
	for out := l.Weight.Rows; len(y) > 0; y = y[out:] {
		addTo(y[:out], y[:out], l.Bias.Value)
	}
}

// fits reports whether values are [rows, cols].
func fits(rows, cols int, values []float32) bool {
	n, ok := product(rows, cols)
	return ok && uint64(len(values)) == n
}

// keep keeps the input for Backward, in training.
func (l *Linear) keep(ctx context.Context, x []float32, rows int, common *commonInput) (err error) {
	if !l.shared.training() || l.shared.again {
		return nil
	}
	if !l.keepsFP8 {
		l.restore(x, rows)
		return nil
	}
	l.kept, err = l.products.(*fp8Products).keep(ctx, x, l.shape(rows), common)
	l.rows, l.ready = rows, err == nil
	return err
}

// restore gives Backward the input in FP32.
func (l *Linear) restore(x []float32, rows int) {
	l.x, l.kept, l.rows, l.ready = x, nil, rows, true
}

// Backward takes the gradient dy, [rows, out], of what the last Forward wrote. It
// writes the gradient of x, dy·W, to dx, [rows, in], and adds that of the weight,
// dyᵀ·x, to Weight.Grad. dx must not overlap dy or x. It is an error without a Forward
// before it.
func (l *Linear) Backward(ctx context.Context, dx, dy []float32) error {
	return l.backward(ctx, dx, dy, nil)
}

// backward is Backward. Where common is not nil, it is what Forward was given.
func (l *Linear) backward(ctx context.Context, dx, dy []float32, common *commonInput) error {
	if err := l.beginBackward(ctx, dx, dy); err != nil {
		return err
	}
	if err := l.products.inputGradient(ctx, dx, dy, l.effectiveWeight(), l.shape(l.rows)); err != nil {
		return err
	}
	l.shared.tap(l.layer, ".input_gradient", dx, l.rows)
	return l.addWeightGradient(ctx, dy, common)
}

// beginBackward begins a backward pass: it checks that there may be one, and lengths.
func (l *Linear) beginBackward(ctx context.Context, dx, dy []float32) error {
	if !l.ready {
		return noForward(l.layer)
	}
	if len(dx) != l.rows*l.Weight.Cols || len(dy) != l.rows*l.Weight.Rows {
		return inputError("%s, [%d, %d]: gradients of %d input and %d output elements are not the %d rows of Forward",
			l.layer, l.Weight.Rows, l.Weight.Cols, len(dx), len(dy), l.rows)
	}
	if err := meter.Err(ctx); err != nil {
		return err
	}
	l.ready = false
	l.shared.tap(l.layer, ".gradient", dy, l.rows)
	return nil
}

func (l *Linear) addWeightGradient(ctx context.Context, dy []float32, common *commonInput) error {
	dWeight := sized(&l.shared.scratch.dWeight, len(l.Weight.Grad))
	if err := l.products.weightGradient(ctx, dWeight, dy, l.x, l.kept, l.shape(l.rows), common); err != nil {
		return err
	}
	swiglu.FoldDown(dWeight, dWeight, l.scales)
	add(l.Weight.Grad, l.Weight.Grad, dWeight, l.workers)
	l.addBiasGradient(dy)
	l.x = nil
	return nil
}

func (l *Linear) addBiasGradient(dy []float32) {
	if l.Bias != nil {
		addRows(l.Bias.Grad, dy, l.workers)
	}
}

func noForward(layer string) error {
	return inputError("%s: Backward without a Forward in training before it", layer)
}

// checkGradients returns an error unless there was a Forward in training and the gradients of
// a layer's input and output are of its rows.
func checkGradients(ready bool, layer string, dx, dy []float32, rows, dim int) error {
	if !ready {
		return noForward(layer)
	}
	if len(dx) != rows*dim || len(dy) != len(dx) {
		return inputError("%s: gradients of %d input and %d output elements are not the %d rows of Forward",
			layer, len(dx), len(dy), rows)
	}
	return nil
}

// fold makes this call and its Backward multiply by W/s along in, where s are scales
// per channel; others, and none, leave W as it is. The gradient stays that of W.
func (l *Linear) fold(s swiglu.Scales) {
	if s.Axis == swiglu.PerToken {
		s = swiglu.Scales{}
	}
	l.scales = s
}

// effectiveWeight returns the weight as it is multiplied.
func (l *Linear) effectiveWeight() []float32 {
	if l.scales.Values == nil {
		return l.Weight.Value
	}
	folded := sized(&l.shared.scratch.folded, len(l.Weight.Value))
	swiglu.FoldDown(folded, l.Weight.Value, l.scales)
	return folded
}
