// Package nn is a small Llama in pure Go, forward and backward, in FP32 and FP8.
//
// # Model
//
// [Llama] is the decoder of Touvron et al. (arXiv 2302.13971): RMSNorm, causal
// attention with rotary positions on interleaved pairs and grouped keys and
// values, a SwiGLU MLP, and a cross-entropy loss. The seven projections of a
// layer are [Linear], in FP32, in FP8, or of rounded operands; everything else, embedding, attention scores
// and output head included, is FP32. Parameters have the names of a Hugging Face
// Llama checkpoint, so that one can be loaded by copying values into
// [Llama.Param]; the rows of q_proj and k_proj must be in the order of interleaved
// pairs, as Meta's and llama2.c's are, and not in that of rotated halves.
//
// # FP8
//
// With [Config.FP8] each of a linear layer's three products, forward, input
// gradient and weight gradient, multiplies in FP8 under recipes of its own for
// both operands, accumulates in FP32 and gives FP32. Master weights and gradients stay
// FP32; AdamW's moments may be in BF16 or FP8 ([github.com/octavo-fp8/octavo/optim.Moments]). [DefaultFP8] is the recipe of
// DeepSeek-V3, [ProfileFP8] that of a named profile. FP8.Stochastic rounds gradients
// without bias, by random numbers that are new in each backward pass.
// [Config.Smoothing] makes the MLP's activation Smooth-SwiGLU. [Llama.Listen] tells a
// recorder of package telemetry what every operand met.
//
// # Rounding
//
// With [Config.Rounding] operands are rounded to a narrow format ([NarrowFormat]) and
// multiplied in FP32: training in BF16, as a baseline, and what floats of 6 and 4 bits
// would do, for scaling laws. [DefaultRounding] is the usual one for each format:
//
//	six := DefaultRounding(NarrowE3M2)
//	model, err := NewLlama(Config{..., Rounding: &six}, seed)
//
// # Reproducibility
//
// The same seed gives the same bits on every machine and for every number of
// workers. Each sum has a fixed order and belongs to one worker; products are
// rounded before they are added, so that no compiler fuses them; elementary
// functions are octavo's own; random numbers are hashes of a seed and a position.
//
// # Memory
//
// Buffers are sized by the first call with a batch shape and reused after that.
// Tensors are row-major, and rows of activations are positions: sequence after
// sequence, and in each the tokens in order.
//
// What a layer needs within a call only, gradients of activations, transposes and
// operands of products, it shares with all others. What grows with the number of
// layers are parameters, their gradients, moments, and the activations that are kept
// from [Llama.Loss] to [Llama.Backward], which [Llama.ActivationBytes] counts. With
// dim D, keys and values of width K, hidden width H, h heads, and T tokens in a
// sequence, [Config.Activations] has a layer keep for each token, in values of FP32
// and of FP8:
//
//	                           fp32          fp8                 fp8-swiglu
//	residual stream            2D FP32       2D FP32             2D FP32
//	inputs of linear layers    3D+H FP32     3D+H FP8            3D FP8
//	queries, keys, values      D+2K FP32     D+2K FP32           D+2K FP32
//	attention probabilities    hT FP32       computed again      computed again
//	inputs of SwiGLU           2H FP32       2H FP32             2H FP8
//
// FP8 values also have their scales. Layers that read the same input share what is
// kept of it, but with delayed scales, whose history is each layer's own, and
// stochastic rounding each keeps its own.
//
// The inputs of linear layers are kept as the operands that the weight gradients
// multiply anyway, quantized earlier, so that fp8 gives the bits of fp32, delayed
// scales included: a history sees an input in Loss then, and not in Backward, which
// is the same step. [Llama.Logits] and [Llama.Evaluate] keep nothing. In fp8-swiglu
// gradients differ: as in DeepSeek-V3 (arXiv 2412.19437, section 3.3.3) the inputs of
// SwiGLU are kept in blocks of 1x128, and its result is computed from them in the
// backward pass. DeepSeek-V3 also keeps the input of the linear layer after attention
// in E5M6 and in blocks along channels, since the backward pass of attention reads
// it, and quantizes it anew along tokens. Attention here does not read it, and it is
// kept as the others are.
//
// # Concurrency
//
// A model uses several goroutines inside a call, but its methods must not be
// called concurrently.
package nn
