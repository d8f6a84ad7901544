package nn

import "github.com/octavo-fp8/octavo/tensor"

// scratch is memory that the layers of a model share because they need it within
// a call only: the next layer overwrites it. The zero value is ready to use.
type scratch struct {
	// The products of a linear layer.
	wT, xT, dyT     []float32
	folded, dWeight []float32
	a, b            tensor.Tensor // operands in FP8

	// Attention and MLP: what each adds to the residual stream, the gradient of what
	// it was given, and a summand of that.
	branch, dx, part []float32

	dMixed, dq, dk, dv  []float32 // of attention
	dScaled, dz, du, dg []float32 // of the MLP
	dNormed             []float32 // what a norm's backward pass returns

	inputs
	branches
}

// inputs are what the linear layers of a block multiply, in FP32.
type inputs struct {
	attention []float32 // of query, key and value: normalized
	mixed     []float32 // of output: the values that attention has weighted
	mlp       []float32 // of gate and up: normalized
	product   []float32 // of down: SwiGLU's result
}

// branches are what SwiGLU multiplies, in FP32: the linear branch u and g, to
// which the gate is applied.
type branches struct{ u, g []float32 }

// inputsFor returns the inputs of a block: its own where they are kept.
func (s *scratch) inputsFor(f ActivationFormat) *inputs {
	if f.keepsInputs() {
		return new(inputs)
	}
	return &s.inputs
}

// branchesFor returns the branches of a block: its own where they are kept.
func (s *scratch) branchesFor(f ActivationFormat) *branches {
	if f.keepsBranches() {
		return new(branches)
	}
	return &s.branches
}
