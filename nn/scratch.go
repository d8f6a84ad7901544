package nn

import "github.com/octavo-fp8/octavo/tensor"

// scratch is memory that the layers of a model share because they need it within
// a call only: the next layer overwrites it. The zero value is ready to use.
type scratch struct {
	// The products of a linear layer.
	wT, xT, dyT     []float32
	folded, dWeight []float32
	a, b            tensor.Tensor // operands in FP8
	decoded         []float32     // an input that was kept in FP8

	// Inputs, weights and gradients that are rounded.
	roundedInput, roundedWeight, roundedGradient decodedOperand

	// An input that layers have in common, also transposed.
	input, inputT                   tensor.Tensor
	inputRecording, inputTRecording recording

	part []float32 // a summand of the gradient of what attention or an MLP was given

	dMixed, dq, dk, dv  []float32 // of attention
	dScaled, dz, du, dg []float32 // of an MLP

	// A block: what attention or MLP adds to the residual stream, the gradient of what
	// it was given, and that of what the norm before it was given.
	branch, dBranch, dNormed []float32

	// What layers keep in FP8, compute again, or need in inference, and so in FP32 for a
	// moment only.
	normed, mixed, product, middle []float32
	projections
	branches

	stream [2][]float32 // before and after a block, in inference
}

// projections are the queries, keys and values of attention, [batch·seq, heads·headDim] or
// kvHeads·headDim; queries and keys are rotated.
type projections struct{ q, k, v []float32 }

// branches are what SwiGLU multiplies, in FP32: the linear branch u and g, to
// which the gate is applied.
type branches struct{ u, g []float32 }

// choose returns own memory of a layer where it keeps what is in it until Backward, and
// otherwise shared memory.
func choose[T any](keeps bool, own, shared *T) *T {
	if keeps {
		return own
	}
	return shared
}

// decodedOperand is an operand that was rounded, or quantized and decoded.
type decodedOperand struct {
	codes  tensor.Tensor
	values []float32
}
