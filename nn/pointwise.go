package nn

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
)

// Function is a function of one value, the zero value ReLU.
type Function uint8

const (
	ReLU     Function = iota // max(x, 0)
	GELU                     // x·Φ(x) with the normal distribution Φ (Hendrycks & Gimpel, arXiv 1606.08415)
	GELUTanh                 // its approximation by tanh, section 2 of that paper: gelu_new, gelu_pytorch_tanh
)

var functions = enum.Enum[Function]{
	Type: "Function", What: "function", Err: ErrConfig, Prefix: "nn", Names: []string{"relu", "gelu", "gelu-tanh"},
}

// String returns the text of f, such as "gelu-tanh".
func (f Function) String() string                   { return functions.String(f) }
func (f Function) MarshalText() ([]byte, error)     { return functions.MarshalText(f) }
func (f *Function) UnmarshalText(text []byte) error { return functions.UnmarshalText(f, text) }

// functionsOf are each function and its derivative, whose value at the corner of ReLU is 0.
var functionsOf = [...]struct{ value, slope func(float32) float32 }{
	ReLU:     {relu, reluGrad},
	GELU:     {elementary.GELU, elementary.GELUGrad},
	GELUTanh: {elementary.GELUTanh, elementary.GELUTanhGrad},
}

func relu(x float32) float32 {
	if x <= 0 {
		return 0
	}
	return x // a NaN too
}

func reluGrad(x float32) float32 {
	if x <= 0 {
		return 0
	}
	return 1
}

// Pointwise is a layer that applies a [Function] to each value, in FP32.
type Pointwise struct {
	function Function
	layer    string // its name in taps
	shared   *Shared
	workers  int

	x     []float32 // what Forward was given
	ready bool
}

// NewPointwise returns a layer of a function, whose result taps see as name+".output". The
// error is [ErrConfig]: there is no such function, or an option cannot be used.
func NewPointwise(name string, f Function, o Options) (*Pointwise, error) {
	if int(f) >= len(functionsOf) {
		return nil, configError("%s: unknown function %d", name, f)
	}
	o, err := o.complete("Options")
	if err != nil {
		return nil, err
	}
	return &Pointwise{function: f, layer: name, shared: o.Shared, workers: o.Workers}, nil
}

// Forward writes the function of each value of x, rows of any length, to y, which is as long
// and must not overlap it. The layer keeps x, which must stay as it is until
// [Pointwise.Backward].
func (p *Pointwise) Forward(ctx context.Context, y, x []float32, rows int) error {
	p.ready = false
	if len(y) != len(x) || rows < 0 || rows == 0 && len(x) > 0 || rows > 0 && len(x)%rows != 0 {
		return inputError("%s: an input of %d and an output of %d elements are not %d equal rows", p.layer, len(x), len(y), rows)
	}
	if err := meter.Err(ctx); err != nil {
		return err
	}
	value := functionsOf[p.function].value
	parallel.For(len(x), elementGrain, p.workers, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y[i] = value(x[i])
		}
	})
	p.shared.tap(p.layer, ".output", y, rows)
	p.x, p.ready = x, p.shared.training()
	return nil
}

// Backward takes the gradient dy of what the last Forward wrote and writes that of x to dx,
// which may be dy and must not overlap x.
func (p *Pointwise) Backward(ctx context.Context, dx, dy []float32) error {
	if !p.ready {
		return noForward(p.layer)
	}
	if len(dx) != len(p.x) || len(dy) != len(p.x) {
		return inputError("%s: gradients of %d input and %d output elements are not the %d of Forward", p.layer, len(dx), len(dy), len(p.x))
	}
	if err := meter.Err(ctx); err != nil {
		return err
	}
	p.ready = false
	slope := functionsOf[p.function].slope
	parallel.For(len(dx), elementGrain, p.workers, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			dx[i] = dy[i] * slope(p.x[i])
		}
	})
	return nil
}
