// Package scaling decides with which scale a block of values is encoded.
//
// A [Recipe] is a granularity (the block that shares a scale), a timing (just
// in time from the block's own amax, or delayed, from the history of the amax of the
// tensor or of that block), a format and an arithmetic. The arithmetic matters to the
// bit, and libraries differ in it, so it has a name, a [Profile]:
//
//	                     multiplier m or divisor d, stored scale s   zero amax   Inf amax   NaN in block
//	te-delayed           m = max*2^-margin / history, s = 1/m        kept        kept       left out
//	te-current           m = max/amax, s = 1/m                       m = 1       m = 1      left out
//	te-block             m = max/amax, s = 1/m                       m = 1       m = 1      left out
//	torchao-tensorwise   m = max/max(amax, 1e-12), s = 1/m           m = max/1e-12  s = Inf s = NaN
//	torchao-rowwise      the same                                    the same    s = Inf    s = NaN
//	deepgemm             s = max(amax, 1e-4)/max, m = 1/s            s = 1e-4/max  s = Inf  s = NaN
//	deepseek             d = s = max(amax, 1e-4)/max                 s = 1e-4/max  s = Inf  left out
//	mtfp8                s = max(amax, 1e-30)*(1/max), m = 1/s       s = 1e-30/max s = Inf  left out
//	mx-floor             s = 2^(floor(log2 amax) - emax), m = 1/s    s = 2^-127  s = NaN    s = NaN
//	mx-rceil             s = amax*(1/max) rounded up to 2^n, m = 1/s s = 2^-127  s = 2^127  left out
//
// Here max is the format's largest finite value, emax its exponent, every
// operation is rounded to float32 (torchao divides in float64 first), and "kept"
// is the scale of the step before. "Left out" means that amax is taken over the
// other values. With s = Inf finite values become 0 and infinities NaN; with
// s = NaN everything becomes NaN; package gemm refuses both by the name of the
// block. Where m would be infinite because amax is tiny, te-delayed and
// te-current use the largest float32 and te-block the largest finite value of
// the source type.
//
// The -pow2 variants round m down to a power of two: TransformerEngine's (te-current,
// te-block) by clearing the mantissa, torchao's (torchao-tensorwise,
// torchao-rowwise) as 2^floor(log2 m), whose logarithm is rounded to float32 and so
// rounds m up where it is just below a power of two (by at most 44 units in the
// last place). The logarithm here is the correctly rounded one, with which PyTorch on a
// CPU agrees in all golden vectors; a GPU's may differ.
//
// The -ue8m0 variants round s up to a power of two. deepgemm-ue8m0 does so with
// integers, clamping the exponent to 1..254, which makes s = 2^127 of Inf and of
// NaN. deepseek-ue8m0 is 2^ceil(log2 s) with an exact logarithm; the kernel it is
// named for takes a GPU's approximate logarithm, which may differ from it for an s
// very near a power of two.
//
// # Delayed scales
//
// A delayed recipe (te-delayed) encodes with a scale that is known before the values
// are: it follows from the amaxes of earlier steps, which a [History] keeps. A GPU
// kernel can then encode in the pass that computes the values. [Histories] are those
// of a model, by name. End each step with [Histories.Update]; [State] saves and
// restores them.
//
// With a block in the recipe, each block of the tensor has a history of its own, as if
// it were a tensor. That is for what keeps its shape and changes little from step to
// step: weights, whose amaxes move by the learning rate. For activations and gradients
// it is a bad idea. Each block's amax is taken over few values, of other tokens in
// every step, so in about half of all cases it is above that of the step before (the
// experiment "octavo lab granularity" shows it), and the block saturates. A longer
// history or a margin avoids that at the price of range, which small blocks were to
// save. Use a just-in-time profile there, or one delayed scale for the tensor.
//
// Each block keeps 4 bytes for each step of its history, by default 4 KiB, as much as
// 32x32 values in float32; where the largest amax counts, every [History.Update]
// reads them. Give such a recipe a small Delayed.Length.
//
// Where the grid of blocks varies from step to step, as with tokens in a batch of
// varying size, Quantize returns [ErrHistory]: a history cannot tell which block is
// which.
//
// # Workers
//
// Data-parallel workers must encode with the same scales. In each step, before
// Histories.Update, they exchange [Amaxes], the maxima of this step alone:
//
//	mine := histories.Amaxes()
//	...                                   // send it, receive those of the others
//	all, err := scaling.MergeAmaxes(append(others, mine)...)
//	err = histories.SetAmaxes(all)
//	histories.Update()
//
// [Merge] does the same with whole states, for workers that have drifted apart.
//
// Sources: TransformerEngine (recipe_common.cuh, delayed_scaling.cu,
// ptx_arch_spec.cuh), torchao (float8_utils.py, mx_tensor.py), DeepGEMM
// (utils/math.py), DeepSeek-V3 (inference/kernel.py), Moore Threads'
// TransformerEngine, and the OCP Microscaling Formats specification 1.0,
// section 6.3.
package scaling
