package nn

import "github.com/octavo-fp8/octavo/tensor"

// scratch is memory that the layers of a model share because they need it within
// a call only: the next layer overwrites it. The zero value is ready to use.
type scratch struct {
	// The products of a linear layer.
	wT, xT, dyT     []float32
	folded, dWeight []float32
	operandPair               // in FP8
	decoded         []float32 // an input that was kept in FP8

	// Inputs, weights and gradients that are rounded.
	roundedInput, roundedWeight, roundedGradient decodedOperand

	inputMemory // of an input that layers have in common

	experts []*expertScratch // of each expert, by its index

	part []float32 // a summand of the gradient of what attention or an MLP was given

	dMixed, dq, dk, dv  []float32 // of attention
	rawHeads            rawHeads  // before their norms
	dRaw                rawHeads  // and their gradients
	sharedKey           []float32 // of MLA, and what its keys and values are made of
	latent, keysValues  []float32
	queryLatent         latentMemory
	kvLatent            latentMemory
	dLatent             []float32
	dLatentNormed       []float32
	dScaled, dz, du, dg []float32 // of an MLP

	// A block: what attention or MLP adds to the residual stream, the gradient of what
	// it was given, and that of what the norm before it was given.
	branch, dBranch, dNormed []float32
	attended, dResult        []float32 // where a norm follows the result of one: it, and its gradient

	// What layers keep in FP8, compute again, or need in inference, and so in FP32 for a
	// moment only.
	normed, mlpNormed, mixed, product, middle []float32
	projections
	branches

	stream [2][]float32 // before and after a block, in inference

	// Experts: what the routed ones are given and give, sorted by expert, and gradients of
	// that; and what shared ones give.
	expertInput, expertOutput, dExpertInput, dExpertOutput, sharedOutput []float32
}

// inputMemory is memory of an input that layers have in common, also transposed.
type inputMemory struct {
	input, inputT                   tensor.Tensor
	inputRecording, inputTRecording recording
}

// expertScratch is memory of an expert, whose operands must be there together with those of
// others.
type expertScratch struct {
	operandPair
	inputMemory
}

// expert returns the memory of expert e.
func (s *scratch) expert(e int) *expertScratch {
	for len(s.experts) <= e {
		s.experts = append(s.experts, new(expertScratch))
	}
	return s.experts[e]
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
