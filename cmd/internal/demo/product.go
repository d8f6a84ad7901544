package demo

import (
	"context"
	"slices"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// layerName is the linear layer that is multiplied: its K of 384 is three blocks.
const layerName = "model.layers.1.mlp.down_proj"

// The fault of the wrong kernel: a block of K is left out of a tile of C.
const (
	wrongBlock = 1
	wrongFrom  = 64 // of rows and columns
)

// product is a layer's product and what kernels made of it.
type product struct {
	operands     []safetensors.Tensor // x, w and their scales
	right, wrong []safetensors.Tensor // c
}

// newProduct quantizes the input and the weights of the layer in the blocks of DeepSeek-V3,
// and computes what DeepGEMM's kernel gives on a Hopper GPU.
func newProduct(ctx context.Context, m *nn.Llama, taps []safetensors.Tensor) (p product, err error) {
	input := taps[slices.IndexFunc(taps, func(t safetensors.Tensor) bool { return t.Name == layerName+".input" })]
	weight := m.Param(layerName + ".weight")
	x, w := &tensor.Tensor{Name: "x", Shape: input.Shape}, &tensor.Tensor{Name: "w", Shape: []int{weight.Rows, weight.Cols}}
	if err := scaling.Quantize(ctx, x, valuesOf(input), scaling.Quantizer{Recipe: scaling.Default(scaling.Input)}); err != nil {
		return p, err
	}
	if err := scaling.Quantize(ctx, w, weight.Value, scaling.Quantizer{Recipe: scaling.Default(scaling.Weight)}); err != nil {
		return p, err
	}
	p.operands = append(codesOf(x), codesOf(w)...)

	right, err := onHopper(ctx, x, w)
	if err != nil {
		return p, err
	}
	lacking := *x
	lacking.Codes = slices.Clone(x.Codes)
	_, k := x.Dims()
	for lo := 0; lo < len(lacking.Codes); lo += k {
		clear(lacking.Codes[lo+wrongBlock*128 : lo+(wrongBlock+1)*128])
	}
	wrong, err := onHopper(ctx, &lacking, w)
	if err != nil {
		return p, err
	}
	for i := range wrong.values {
		if row, col := i/right.cols, i%right.cols; row < wrongFrom || row >= 2*wrongFrom || col < wrongFrom {
			wrong.values[i] = right.values[i]
		}
	}
	shape := []int{right.rows, right.cols}
	p.right = []safetensors.Tensor{float32s("c", shape, right.values)}
	p.wrong = []safetensors.Tensor{float32s("c", shape, wrong.values)}
	return p, nil
}

// matrix is values with a shape.
type matrix struct {
	rows, cols int
	values     []float32
}

// onHopper returns the bits of a product on a Hopper GPU by DeepGEMM.
func onHopper(ctx context.Context, a, b *tensor.Tensor) (c matrix, err error) {
	c.rows, _ = a.Dims()
	c.cols, _ = b.Dims()
	c.values = make([]float32, c.rows*c.cols)
	kernel := oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128, Scales: oracle.ProductThenFMA}
	return c, oracle.Predict(ctx, c.values, nil, a, b, kernel, oracle.Options{})
}
