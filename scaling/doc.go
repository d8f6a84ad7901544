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
//	deepgemm-fp4         as deepgemm, with max = 6                   s = 1e-4/6  s = Inf    s = NaN
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
// # MX formats
//
// OCP's Microscaling formats have blocks of 32 under a power of two, E8M0. Any format of
// elements goes with mx-floor, mx-rceil, mx-rceil-torchao, mx-ceil, mx-even and
// mx-compressed-tensors; the others are for E2M1. With E the exponent field of amax and m
// its mantissa, s is 2^(field-127), field being at least 0, and NaN field FF:
//
//	                      field                                         zero, tiny   Inf amax   NaN in block
//	mx-floor              E - emax                                      00           FF         FF
//	mx-ceil               E + (m>0) - emax                              00           FF         FF
//	mx-even               E of amax rounded to the format's mantissa, - emax  00     FF         FF
//	mx-compressed-tensors the same with one bit of mantissa for every format  00     FF         FF
//	mx-rceil              amax*(1/max) rounded up                       00           FE         left out
//	mx-rceil-torchao      amax*(1/max) rounded up                       00           FF         FF
//	mx-modelopt           2^ceil(log2(amax/6)), log2 rounded to float32 00           FF         FF
//	mx-te-pow2            the same                                      00           FE         FF
//	mx-fouroversix        amax/6 rounded up                             00, codes 0  FF         FF
//	deepgemm-fp4-ue8m0    max(amax, 1e-4)/6 rounded up, 01..FE          1e-4's       FE         FE
//
// In mx-even and mx-compressed-tensors an amax that rounds to 2^128 gives FF too. A block
// under FF is NaN, whatever its codes. An amax beside a power of two tells most of these
// apart: amax/6 one unit in the last place above 2^n stays on 2^n in mx-modelopt and
// mx-te-pow2 and goes to 2^(n+1) in mx-rceil. mx-floor and mx-even may saturate values.
// Model-Optimizer leaves undefined what Inf and NaN become, and compressed-tensors what a
// NaN does: it is FF here.
//
// MXINT8 has a reference for mx-floor alone. For the others, here, its max is 127/64, its
// emax 0 and its mantissa the 6 bits behind the point, so that mx-even saturates nothing. The
// smallest amaxes, which are subnormal, give field 01 in mx-ceil.
//
// A finite amax has a finite scale, but for that FF of an amax that rounds to 2^128. In the
// formats of their libraries no arithmetic above leads beyond 2^127. In MXINT8 an amax above
// 127/64*2^127 would, in mx-ceil and mx-rceil-torchao and in the -pow2 and -ue8m0 variants:
// its scale is 2^127, under which values above 127/64 saturate, and -2 is -128/64.
//
// mx-rceil is what TransformerEngine and PTX's cvt.rp.satfinite.ue8m0x2.f32 compute; what
// torchao calls RCEIL differs from it in Inf and NaN alone.
//
// # NVFP4
//
// Blocks of 16 of E2M1 under a UE4M3 scale s, under a float32 for the tensor, the outer
// scale g: see [tensor.Outer]. A is the amax of the tensor and a that of a block, every
// operation is rounded to float32, E4M3 is rounding to nearest even, and e is what values
// are multiplied by:
//
//	nvfp4-te                  S = min(2688/A, MAX), 1 if that is 0; g = 1/S; s = E4M3(min(a*(S*(1/6)), 448)); e = min(1/(s*g), MAX)
//	nvfp4-torchao             no g; s = E4M3(clamp(a/6, 2^-6, 448)); e = 1/s
//	nvfp4-torchao-global      g = A/2688; s = E4M3(clamp((a/6)/g, 2^-6, 448)); e = (1/g)/s
//	nvfp4-compressed-tensors  g = (1/max(A, 2^-126))*2688, a divisor, 1 if Inf; s = E4M3(min(g*(a/6), 448)), 0.125 if 0; x/(s/g)
//	nvfp4-modelopt            g = A/2688; d = a/(6*g), 1 if 0; s = E4M3(clamp(d, 2^-9, 448)); x/(s*g)
//	nvfp4-fouroversix-static6 E = 2688/A; g = A/2688; s = E4M3((a/6)*E), 0 if A = 0; e = 1/((1/E)*s), 0 if s = 0
//	nvfp4-fouroversix-static4 the same with 4 for 6 and 1792 for 2688
//
// MAX is the largest float32. What they make of a tensor whose A is out of the ordinary,
// and of a block of zeros in another:
//
//	                          A = 0            A below 2^-117          A = Inf               NaN             block of zeros
//	nvfp4-te                  s = 0            S = MAX                 S = g = 1, s is cut   left out        s = 0
//	nvfp4-te-4over6-          s = 0            S = MAX                 S = g = 1, s is cut   left out        s = 0
//	nvfp4-torchao             s = 2^-6         s = 2^-6                s = 448               s NaN           s = 2^-6
//	nvfp4-torchao-global      s NaN            codes of 6, or s NaN    g = Inf               all NaN         s = 2^-6
//	nvfp4-compressed-tensors  s = 0.125, g = 1 s = 0.125, g = 1        g = 0                 all NaN         s = 0.125
//	nvfp4-modelopt            s NaN            codes of 6 below 2^-138 g = Inf               all NaN         s = 1
//	nvfp4-fouroversix-        s = 0            s NaN                   g = Inf               all NaN         s = 0
//
// A block whose s is 0 though it is not all zeros has codes of 6 and values of 0 in
// nvfp4-te, and codes of 0 in fouroversix. An outer scale that is infinite or NaN, or a
// divisor of 0, is no scale: [tensor.Tensor.CheckScales] and package gemm refuse it. NaN is
// left out by TransformerEngine's kernels, whose reference in Python makes all NaN.
//
// nvfp4-te-row has an A and a g for each row. Recipe.OuterRows says the same of any number
// of rows, such as those of each matrix of a stack, and Recipe.OuterAmax gives one A, such as that of
// weights which share g. TransformerEngine's weights have blocks
// of 16x16, so that their transpose has the same codes. Its random Hadamard transform is an
// operation of its own, [HadamardTransform], of what is quantized then.
//
// Four-over-six (arXiv 2512.02010) chooses for each block between s and the scale that is
// half as large again, under which the largest code is 4: the latter if its error is
// smaller. nvfp4-te-4over6-RULE has S = 6*448/A or 6*256/A as its name says and s =
// E4M3(min((a/6)*S, 448)); nvfp4-fouroversix-RULE has 6*256. RULE is the error of a block:
// mae the sum of |d|, mse that of d*d, absmax the largest |d|, with d = ((v*s)*A)/(6*M) - x
// of a code's value v, or with -fast v*s - x*S. Values of a row are added in order, and rows
// as a tree; fouroversix adds in PyTorch's order, which is not defined. Nor does fouroversix
// saturate: where a scale of 2^-9 or 2^-8 was rounded down so far that a value is 7 or more,
// its code runs into the sign. Here it is 6.
//
// # Rounding
//
// What profiles for E2M1 round by is a [fp8.Policy] of the library, [Profile.Policy], in the
// fields that Recipe.Policy leaves at 0: DeepGEMM and Model-Optimizer's MXFP4 round ties
// toward zero. A zero is +0 whatever its sign in TransformerEngine's NVFP4, compressed-tensors,
// Model-Optimizer's NVFP4 and fouroversix, also what became zero in DeepGEMM, and -0 in
// Model-Optimizer's MXFP4; torchao keeps its sign. mx-te-pow2 keeps it as well, as its
// reference vectors do, though the cast of TransformerEngine's reference gives +0. A NaN in
// a block whose scale is a number is +0 in TransformerEngine, and so is what a scale that is
// no number makes NaN in TransformerEngine, compressed-tensors and DeepGEMM. It is 6
// elsewhere, as in Model-Optimizer; torchao and fouroversix make other codes of it.
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
// section 6.3. Of narrower formats: torchao (mx_tensor.py, nvfp4_tensor.py),
// TransformerEngine (custom_recipes/reference_nvfp4.py), compressed-tensors
// (utils/mxfp_utils.py, utils/helpers.py, lifecycle/forward_helpers.py), Model-Optimizer
// (qtensor/mxfp4_tensor.py, nvfp4_tensor.py), fouroversix (pytorch/reference.py) and
// DeepGEMM (utils/math.py).
package scaling
