// Package swiglu has the SwiGLU activation, z = u·silu(g) with u the linear and
// g the gate branch, and Smooth-SwiGLU, which keeps its outliers inside the
// range of FP8.
//
// With weight decay the two branches of a neuron align during long trainings,
// SwiGLU becomes quadratic in its input, and a few channels of z grow far beyond
// the others. Smooth-SwiGLU (Fishman et al., "Scaling FP8 training to
// trillion-token LLMs", arXiv 2409.12517) multiplies the linear branch by scales
// s before z is quantized and takes them back after the down projection:
//
//   - [PerChannel], as in the paper: a scale for each channel i, from the largest
//     |u| of that channel. It varies along the K of the down projection, so its
//     inverse is folded into the projection's weight before that is quantized:
//     [FoldDown].
//   - [PerToken], as in the code the authors released: a scale for each row, from
//     the largest |u| of that row. It commutes with the product, and the rows of
//     the result are divided by it: [Unscale].
//
// By default scales are powers of two, s = 2^-floor(log2 amax). Multiplying by
// them is exact in every binary format, so but for over- and underflow the
// smoothed graph gives the plain graph's bits wherever nothing is quantized in
// between, and Q(s·w1), the weight merged for inference, is s·Q(w1). A channel
// or row whose amax is 0, infinite or NaN has scale 1.
//
// Scales are constants to the gradient, as in the released code.
//
// The functions on slices are the same to the bit at every level and on every
// architecture, NaN included. They take no context: they pass once over memory that
// the caller holds. Slices of the wrong length panic with a constant message before
// anything is written.
//
// # Workers
//
// Data-parallel workers that delay their scales exchange [Amaxes] in each step before
// [Smoother.Update]: a few bytes a channel.
package swiglu
