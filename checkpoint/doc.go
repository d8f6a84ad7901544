// Package checkpoint reads and writes models as loaders want them: a directory of
// safetensors files with an index and a configuration, in any of the layouts in which
// DeepSeek, vLLM, transformers, compressed-tensors, ModelOpt, OpenAI and torchao keep
// quantized weights.
//
// # Reading
//
// [Open] opens a file, a directory or an index and reads headers alone. A [Checkpoint] has
// two views of what is in it. Its entries ([Checkpoint.Entries]) are tensors as they are
// stored. Its weights ([Checkpoint.Weights]) are those of the model: each is values, or codes
// joined with the scales that give them meaning, wherever the index has those. A [Reader]
// reads rows of a weight as a [tensor.Tensor], codes unpacked to one a byte, and
// [ReadValues] their values. [Checkpoint.Detect] names the layout.
//
// # Schemes and layouts
//
// A [Scheme] is how one weight is stored: names, types and shapes of its parts, the block that
// shares a scale, what scales mean. A [Layout] is a way of storing a whole model: which weights
// are in which scheme, by whose [Arithmetic] they come about, and what the configuration says.
// Both are tables. To add one is to write its table and a case of the golden test.
//
//	layout             codes               scales                                      arithmetic
//	deepseek-v3        weight E4M3         weight_scale_inv F32 [⌈o/128⌉,⌈i/128⌉]      deepgemm
//	deepseek-v3-ue8m0  weight E4M3         the same, powers of two                     deepgemm-ue8m0
//	deepseek-v4        weight E4M3         scale F8_E8M0 [⌈o/128⌉,⌈i/128⌉]             deepgemm-ue8m0
//	    routed experts weight I8 [o,i/2]   scale F8_E8M0 [o,i/32]                      deepgemm-fp4-ue8m0
//	fp8                weight E4M3         weight_scale F32 [], input_scale            autofp8
//	ct-fp8             weight E4M3         weight_scale [1], input_scale [1]           compressed-tensors
//	ct-fp8-dynamic     weight E4M3         weight_scale [o,1]                          compressed-tensors
//	ct-fp8-block       weight E4M3         weight_scale [⌈o/128⌉,⌈i/128⌉]              compressed-tensors
//	ct-mxfp8           weight E4M3         weight_scale U8 [o,i/32]                    mx-compressed-tensors
//	ct-mxfp4           weight_packed U8    weight_scale U8 [o,i/32]                    mx-compressed-tensors
//	ct-nvfp4a16        weight_packed U8    weight_scale F8_E4M3 [o,i/16],              compressed-tensors
//	                                       weight_global_scale F32 [1], a divisor
//	ct-mixed           those of ct-nvfp4a16, ct-fp8-dynamic, ct-fp8-block, ct-mxfp8 and ct-mxfp4, by modules
//	ct-nvfp4           as ct-nvfp4a16, and input_global_scale F32 [1]
//	modelopt-fp8       weight E4M3         weight_scale F32 [], input_scale F32 []     modelopt-fp8
//	modelopt-nvfp4     weight U8 [o,i/2]   weight_scale F8_E4M3 [o,i/16],              nvfp4-modelopt
//	                                       weight_scale_2 F32 [], input_scale F32 []
//	gpt-oss            _blocks U8          _scales U8 [E,o,i/32]                       mx-rceil
//	torchao            _weight_qdata E4M3  _weight_scale                               read only
//
// bf16, f16 and f32 are layouts without codes. Scales are multipliers but where it says
// otherwise. Of two codes in a byte the first is the low half. Types left out are those of the
// weight before.
//
// gpt-oss has experts as [E,o,i], with rows of gate and up in turn, which in values are
// [E,i,o] under the same name. What made its codes is not published: mx-rceil rounds scales up,
// as Triton's kernels do. What torchao has in the metadata of its files cannot be written.
//
// # Converting
//
// [PlanOptions] choose weights by their names, or have a recipe for each module. In ct-mixed, whose
// config_groups name the modules of each scheme, those may be several; by itself it is ct-nvfp4a16
// with down_proj as in ct-fp8-dynamic.
//
// [NewPlan] says what becomes of every weight and writes nothing; [Write] writes a shard of a
// plan, in strips of rows, on all processors, in bounded memory; [Plan.Documents] are
// config.json and the index. The bytes depend on the source, the layout and [PlanOptions] and
// on nothing else.
//
// [Convert] does all of it: it writes the shards of a plan, configuration, index and other
// files into a directory, goes on where it was cut off, and ends with a [Certificate] of what
// every weight lost, or of the proof that nothing was.
//
// By default a layout leaves alone what loaders do not expect to be quantized: everything that
// is not a matrix, and what is [Kept]: embeddings, the head, routers, norms, towers of other
// senses. Those of them that loaders would take for quantized are listed in the configuration.
// Each expert of a stack has a grid of its own, ⌈rows/128⌉ high, as transformers has it. Weights
// that loaders fuse (q, k and v; gate and up, w1 and w3; q_a and kv_a) share what is one for the
// whole tensor in the layouts that say so ([Layout.Share]): vLLM takes the largest of several
// divisors of NVFP4 for all, without rescaling.
//
// A weight that is in the scheme of the layout already, and so is all that loaders fuse with
// it, is copied with its scales rather than quantized again, unless [PlanOptions] name an
// arithmetic.
//
// Values of codes are decode(code)*scale, times or divided by the outer scale, rounded to
// float32 once and then to the type that is asked for, which is what DeepSeek's
// fp8_cast_bf16.py computes.
//
// # Comparing and proving
//
// [Diff] compares the values of two checkpoints in whatever layouts, weight by weight.
// [ProveLossless] says by codes and scales alone whether weights such as MXFP4's lose anything
// in another layout, and which block is the first that does. The two agree: what is proved of a
// conversion with its arithmetic is what Diff finds of its result.
//
// # Errors
//
// What is wrong with files is an error that names the file, the tensor, the place and the
// value: [ErrIndex], [ErrConfig], [ErrLayout], or one of package safetensors. [OpenLenient]
// and [Checkpoint.Problems] return all of them, for a linter.
//
// # Sources
//
// DeepSeek-V3 (README_WEIGHTS.md, inference/fp8_cast_bf16.py, inference/kernel.py), DeepGEMM
// (deep_gemm/utils/math.py), compressed-tensors (quantization/quant_scheme.py,
// quantization/utils/helpers.py, compressors), llm-compressor (observers/helpers.py),
// AutoFP8 (auto_fp8/quantize.py), vLLM (quantization/fp8.py, modelopt.py,
// compressed_tensors), transformers (integrations/finegrained_fp8.py), Model-Optimizer
// (torch/export/quant_utils.py, convert_hf_config.py), gpt-oss (torch/weights.py) and torchao
// (prototype/safetensors).
package checkpoint
