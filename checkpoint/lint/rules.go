package lint

// Loaders that findings concern.
var (
	everyone     = []string{"vLLM", "SGLang", "transformers"}
	servers      = []string{"vLLM", "SGLang"}
	onlyVLLM     = []string{"vLLM"}
	transformers = []string{"transformers"}
	allReaders   = []string{"every reader of safetensors"}
)

// rules are all rules: files and their index, the configuration, tensors and scales by their
// headers, and what needs data.
var rules = []*Rule{
	{
		ID: "file-malformed", Title: "a file is not a whole safetensors file", Severity: Error,
		Consequence: "its tensors cannot be read", Mend: "copy or download the file again, and compare its checksum",
		Loaders: allReaders, Sources: []string{"huggingface/huggingface_hub#4725"}, check: checkReadable, broken: true,
	},
	{
		ID: "metadata-not-strings", Title: "__metadata__ is null or has values that are no strings", Severity: Error,
		Consequence: "the file is refused, or the reader fails with a type error", Mend: "write every value of __metadata__ as a string",
		Loaders: allReaders, Sources: []string{"safetensors/safetensors#278", "safetensors/safetensors#549"}, check: checkMetadataValues, broken: true,
	},
	{
		ID: "metadata-format", Title: "__metadata__ has no format", Severity: Warning,
		Consequence: "transformers before 4.48 stops with an AttributeError", Mend: `write {"format":"pt"} as __metadata__ of every shard`,
		Loaders: []string{"transformers < 4.48", "MLX"}, Sources: []string{"deepseek-ai/DeepSeek-V3#749", "hiyouga/LlamaFactory#6803", "ml-explore/mlx#743"}, check: checkMetadataFormat,
	},
	{
		ID: "index-missing-file", Title: "the index names a file that is absent", Severity: Error,
		Consequence: "loading stops, or older loaders leave the weights as they happen to be in memory", Mend: "put the shard back, or write the index again",
		Loaders: everyone, Sources: []string{"sgl-project/sglang#32279", "huggingface/huggingface_hub#4725"}, check: checkIndexFiles,
	},
	{
		ID: "index-missing-tensor", Title: "the index names a tensor that no shard has", Severity: Error,
		Consequence: "loading stops, or the weight keeps what happens to be in memory", Mend: "put the tensor back, or write the index again",
		Loaders: everyone, Sources: []string{"huggingface/huggingface_hub#4728", "Neph0s/CoSER#3"}, check: checkIndexTensors,
	},
	{
		ID: "index-wrong-file", Title: "a tensor is in another shard than the index says", Severity: Error,
		Consequence: "loaders that follow the index do not find the tensor", Mend: "write the index again from the shards' headers",
		Loaders: []string{"transformers", "DeepSeek's scripts"}, Sources: []string{"huggingface/huggingface_hub#4728"}, check: checkIndexPlaces,
	},
	{
		ID: "index-lacks-tensor", Title: "a shard has a tensor that the index does not name", Severity: Error,
		Consequence: "vLLM and SGLang load it all the same, over what it is named like; transformers does not", Mend: "remove the tensor from the shard, or name it in the index",
		Loaders: everyone, Sources: []string{"vllm-project/vllm#54230", "Blaizzy/mlx-vlm#1464"}, check: checkIndexLacks,
	},
	{
		ID: "shard-count", Title: "names of files speak of another number of shards", Severity: Error,
		Consequence: "a shard is missing, or shards of two versions are mixed", Mend: "remove the shards of the older set, or fetch the missing ones",
		Loaders: everyone, Sources: []string{"vllm-project/vllm#54230", "huggingface/huggingface_hub#4725"}, check: checkShardCount,
	},
	{
		ID: "shard-unlisted", Title: "a safetensors file is not in the index", Severity: Error,
		Consequence: "loaders that read every file load its tensors over those of the shards", Mend: "move the file out of the directory",
		Loaders: []string{"MLX", "vLLM without index", "SGLang without index"}, Sources: []string{"vllm-project/vllm#40765", "syv-ai/qwen38-27b-rtx3090#123"}, check: checkUnlisted,
	},
	{
		ID: "tensor-duplicate", Title: "a tensor is in two files", Severity: Error,
		Consequence: "the one that is read last counts, in an order that differs between loaders", Mend: "keep the one that the index means and remove the other",
		Loaders: everyone, Sources: []string{"vllm-project/vllm#54230", "Blaizzy/mlx-vlm#1827"}, check: checkDuplicates,
	},
	{
		ID: "tensor-twin", Title: "a weight is there twice, once as codes", Severity: Error,
		Consequence: "loaders take one of them, or stop at the other", Mend: "remove one of them, codes with their scales",
		Loaders: everyone, Sources: []string{"vllm-project/vllm#54230", "vllm-project/vllm#40765"}, check: checkTwins,
	},
	{
		ID: "total-size", Title: "total_size of the index is wrong", Severity: Warning,
		Consequence: "memory is planned from a wrong size, such as that of the unquantized model", Mend: "write the sum of the tensors' bytes",
		Loaders: []string{"transformers", "accelerate", "tools that estimate memory"}, Sources: []string{"huggingface/hub-docs#2704", "AlexsJones/llmfit#1045"}, check: checkTotalSize,
	},
	{
		ID: "total-size-absent", Title: "the index has no total_size", Severity: Info,
		Consequence: "tools do not know the size of the model before they read it", Mend: "write the sum of the tensors' bytes as metadata.total_size",
		Loaders: []string{"accelerate", "tools that estimate memory"}, Sources: []string{"huggingface/hub-docs#2704"}, check: checkTotalSizeAbsent,
	},
	{
		ID: "config-malformed", Title: "config.json or hf_quant_config.json cannot be read", Severity: Error,
		Consequence: "the model cannot be loaded", Mend: "write the file again as a JSON object",
		Loaders: everyone, Sources: []string{"sgl-project/sglang#6054"}, check: checkConfigReadable, broken: true,
	},
	{
		ID: "config-leftover", Title: "quantization_config of a model that is not quantized", Severity: Error,
		Consequence: "loaders ask for scales that are not there", Mend: "remove quantization_config from config.json, and hf_quant_config.json",
		Loaders: everyone, Sources: []string{"sgl-project/sglang#6054"}, check: checkLeftover,
	},
	{
		ID: "config-absent", Title: "codes without quantization_config", Severity: Error,
		Consequence: "codes are taken for values, without their scales", Mend: "write the quantization_config of the layout or method into config.json",
		Loaders: everyone, Sources: []string{"deepseek-ai/DeepSeek-V3.2-Exp#59"}, check: checkUndeclared,
	},
	{
		ID: "config-status", Title: "quantization_status is not compressed", Severity: Error,
		Consequence: "transformers 5.13 loads codes without applying weight_scale", Mend: `write "quantization_status": "compressed"`,
		Loaders: transformers, Sources: []string{"huggingface/transformers#47145"}, check: checkStatus,
	},
	{
		ID: "config-format", Title: "the declared format is not that of the tensors", Severity: Error,
		Consequence: "loaders look for tensors of other names or types", Mend: "declare the format that the tensors have",
		Loaders: everyone, Sources: []string{"huggingface/transformers#47145"}, check: checkFormat,
	},
	{
		ID: "config-method", Title: "tensors are of another method of quantization than the one that is declared", Severity: Error,
		Consequence: "loaders look for tensors of other names and stop, or leave weights as they happen to be in memory", Mend: "declare the method that the tensors have, or store the weights in the one that is declared",
		Loaders: everyone, Sources: []string{"sgl-project/sglang#23841", "vllm-project/vllm#19050"}, check: checkMethod,
	},
	{
		ID: "config-differs", Title: "config.json and hf_quant_config.json contradict each other", Severity: Error,
		Consequence: "what is loaded depends on which of them the loader reads", Mend: "make both say the same",
		Loaders: []string{"vLLM", "SGLang", "TensorRT-LLM"}, Sources: []string{"huggingface/transformers#47145"}, check: checkConfigs,
	},
	{
		ID: "ignore-missing", Title: "a module that is not quantized is not in the list of those", Severity: Error,
		Consequence: "vLLM allocates codes for it and stops; transformers casts it without a scale", Mend: "add the module to the list of the configuration",
		Loaders: everyone, Sources: []string{"NVIDIA/Model-Optimizer#1858", "huggingface/transformers#48349", "thinking-machines-lab/tinker-cookbook#580", "vllm-project/llm-compressor#1306"}, check: checkIgnoreMissing,
	},
	{
		ID: "ignore-unmatched", Title: "the list of unquantized modules names one that is not there", Severity: Warning,
		Consequence: "what was meant is under another name and is not left out", Mend: "write the prefix that the tensors have, or remove the entry",
		Loaders: everyone, Sources: []string{"vllm-project/llm-compressor#1306", "NVIDIA/Model-Optimizer#1858"}, check: checkIgnoreUnmatched,
	},
	{
		ID: "ignore-quantized", Title: "a module that the list leaves out is quantized", Severity: Error,
		Consequence: "codes are loaded as values and the scales are dropped", Mend: "remove the module from the list, or store it unquantized",
		Loaders: everyone, Sources: []string{"vllm-project/vllm#54556"}, check: checkIgnoreQuantized,
	},
	{
		ID: "fused-mixed", Title: "of weights that loaders fuse only some are quantized", Severity: Error,
		Consequence: "vLLM stops: some but not all shards are quantized", Mend: "quantize all of them, or none",
		Loaders: servers, Sources: []string{"vllm-project/llm-compressor#1306"}, check: checkFusedMixed,
	},
	{
		ID: "quantized-embedding", Title: "an embedding is quantized", Severity: Error,
		Consequence: "vLLM has no method for it and stops; elsewhere rare tokens suffer", Mend: "keep the embedding in BF16",
		Loaders: onlyVLLM, Sources: []string{"intel/auto-round#1776", "vllm-project/vllm#54304"}, check: checkQuantizedEmbedding,
	},
	{
		ID: "quantized-router", Title: "a router or a norm is quantized", Severity: Warning,
		Consequence: "tokens go to other experts; loaders that keep it in BF16 stop", Mend: "keep it in BF16 and list it as not quantized",
		Loaders: servers, Sources: []string{"vllm-project/vllm-omni#5573", "vllm-project/vllm#25923"}, check: checkQuantizedRouter,
	},
	{
		ID: "tied-head", Title: "the head is tied and stored", Severity: Warning,
		Consequence: "SGLang stops with a KeyError; others ignore the tensors, or use them instead", Mend: "remove lm_head, or set tie_word_embeddings to false",
		Loaders: everyone, Sources: []string{"sgl-project/sglang#2935"}, check: checkTiedHead,
	},
	{
		ID: "head-absent", Title: "the head is not tied and absent", Severity: Warning,
		Consequence: "the head is left as it happens to be in memory", Mend: "add lm_head.weight, or set tie_word_embeddings to true",
		Loaders: everyone, Sources: []string{"sgl-project/sglang#2935"}, check: checkHeadAbsent,
	},
	{
		ID: "dtype-rare", Title: "a type that many readers do not know", Severity: Warning,
		Consequence: "readers stop at the type, or take a shape of codes for one of bytes", Mend: "store the bytes as U8, two codes of four bits in one",
		Loaders: []string{"safetensors (Python, from bytes)", "huggingface_hub", "ComfyUI-GGUF"}, Sources: []string{"safetensors/safetensors#839", "huggingface/huggingface_hub#4901", "city96/ComfyUI-GGUF#21", "vllm-project/llm-compressor#138"}, check: checkRareTypes,
	},
	{
		ID: "scale-missing", Title: "codes without a scale", Severity: Error,
		Consequence: "the loader takes 1, or what happens to be in memory, for the scale", Mend: "quantize the weight again, or restore the scale",
		Loaders: everyone, Sources: []string{"leejet/stable-diffusion.cpp#1898", "kekzl/imp#1450"}, check: faulty(missing),
	},
	{
		ID: "scale-misnamed", Title: "a scale has the name of another layout", Severity: Error,
		Consequence: "loaders do not map the name: the weight is used without its scale", Mend: "rename the scale as the declared method has it",
		Loaders: everyone, Sources: []string{"vllm-project/vllm#54556", "leejet/stable-diffusion.cpp#1898", "kekzl/imp#1450"}, check: checkScaleMisnamed,
	},
	{
		ID: "scale-orphan", Title: "a scale without its codes", Severity: Error,
		Consequence: "loaders stop at a name that they do not expect, or scale values a second time", Mend: "remove the scale, or restore the codes",
		Loaders: everyone, Sources: []string{"vllm-project/vllm#54556"}, check: checkOrphans,
	},
	{
		ID: "scale-twice", Title: "a weight has scales under two names", Severity: Error,
		Consequence: "which of them is used depends on the loader", Mend: "keep the scale of the declared layout",
		Loaders: everyone, Sources: []string{"vllm-project/vllm#54556"}, check: checkScaleTwice,
	},
	{
		ID: "scale-grid", Title: "scales have the wrong shape", Severity: Error,
		Consequence: "loading stops, or blocks get the scales of others", Mend: "quantize the weight again; a grid is [ceil(rows/block), ceil(columns/block)] of the unpacked shape",
		Loaders: everyone, Sources: []string{"NVIDIA/Model-Optimizer#2038", "huggingface/transformers#36026", "unslothai/unsloth#8953"}, check: faulty(badGrid),
	},
	{
		ID: "scale-type", Title: "scales are of a type that the layout does not have", Severity: Error,
		Consequence: "bytes are taken for numbers, or numbers for bytes", Mend: "store the scales in the type of the layout",
		Loaders: everyone, Sources: []string{"vllm-project/vllm#51946", "vllm-project/vllm#43416"}, check: faulty(badType),
	},
	{
		ID: "input-scale-missing", Title: "static activations without input scale", Severity: Error,
		Consequence: "activations are scaled by 1, or by what happens to be in memory", Mend: "calibrate, or declare dynamic activations",
		Loaders: everyone, Sources: []string{"vllm-project/vllm#54556"}, check: checkInputMissing,
	},
	{
		ID: "block-straddle", Title: "a block reaches across parts that loaders split", Severity: Warning,
		Consequence: "loading stops, or a part gets scales of its neighbour", Mend: "quantize in blocks that divide the parts, or load with fewer devices",
		Loaders: servers, Sources: []string{"vllm-project/vllm#33327", "vllm-project/vllm#52997", "vllm-project/vllm#39046", "sgl-project/sglang#26107", "vllm-project/llm-compressor#2286"}, check: checkStraddle,
	},
	{
		ID: "block-ragged", Title: "a block reaches over the edge of a weight", Severity: Info,
		Consequence: "compressed-tensors and others refuse it; transformers, where it dequantizes, takes rows // grid for the block, and other scales where that divides", Mend: "load it with a reader that takes the block from the configuration, or keep the weight in BF16",
		Loaders: []string{"compressed-tensors", "transformers with dequantize", "ms-swift"}, Sources: []string{"vllm-project/llm-compressor#1817", "huggingface/transformers#36026", "huggingface/transformers#45880", "modelscope/ms-swift#6851", "NVIDIA/TensorRT-Model-Connect#1115"}, check: checkRagged,
	},
	{
		ID: "kv-scale-missing", Title: "a layer lacks scales of cached keys or values", Severity: Warning,
		Consequence: "the loader takes 1 and warns, or older ones stop where only one is there", Mend: "calibrate k_scale and v_scale of every layer, or drop kv_cache_scheme",
		Loaders: servers, Sources: []string{"vllm-project/vllm#54623", "vllm-project/vllm#46264"}, check: checkKVMissing,
	},
	{
		ID: "kv-scale-name", Title: "a scale of cached keys or values has a name that nobody maps", Severity: Warning,
		Consequence: "it is ignored, or loading stops with a KeyError", Mend: "rename it to self_attn.k_scale or v_scale, or k_proj.k_scale or v_proj.v_scale",
		Loaders: servers, Sources: []string{"sgl-project/sglang#39942", "vllm-project/vllm#15784", "vllm-project/vllm#25047"}, check: checkKVNames,
	},
	{
		ID: "kv-scale-undeclared", Title: "scales of cached keys and values without a scheme", Severity: Info,
		Consequence: "they are used only if the server is told to cache in FP8", Mend: "declare kv_cache_scheme, or remove them",
		Loaders: servers, Sources: []string{"vllm-project/vllm#15784"}, check: checkKVUndeclared,
	},
	{
		ID: "kv-scale-invalid", Title: "a scale of cached keys or values is none", Severity: Warning, Data: true,
		Consequence: "cached keys or values become NaN or zero", Mend: "calibrate again",
		Loaders: servers, Sources: []string{"vllm-project/vllm#46264"}, check: checkKVInvalid,
	},
	{
		ID: "scale-invalid", Title: "a scale is NaN, infinite, zero or negative", Severity: Error, Data: true,
		Consequence: "its block becomes NaN, infinite or zero, and often the whole layer", Mend: "quantize the module again: it was not calibrated, or its memory not initialized",
		Loaders: everyone, Sources: []string{"vllm-project/compressed-tensors#832", "vllm-project/compressed-tensors#854", "vllm-project/compressed-tensors#821", "NVIDIA/TensorRT-LLM#16447", "NVIDIA/Model-Optimizer#1382"}, check: checkScaleInvalid,
	},
	{
		ID: "scale-zero", Title: "a block scale is zero over codes that are not", Severity: Error, Data: true,
		Consequence: "its block becomes zero although its weights are not", Mend: "quantize the weight again with scales clamped to the smallest positive one",
		Loaders: everyone, Sources: []string{"NVIDIA/Model-Optimizer#1397", "vllm-project/compressed-tensors#832"}, check: checkScaleZero,
	},
	{
		ID: "scale-reciprocal", Title: "scales are stored as their reciprocals", Severity: Error, Data: true,
		Consequence: "weights are off by the square of their scale, a factor of millions", Mend: "store amax/448, which codes are multiplied by, whatever the name says",
		Loaders: everyone, Sources: []string{"modular/modular#6600", "kekzl/imp#1433"}, check: checkScaleReciprocal,
	},
	{
		ID: "outer-unequal", Title: "weights that loaders fuse have different global scales", Severity: Warning, Data: true,
		Consequence: "loaders take one of them for all: the others are off by the ratio", Mend: "take one global scale for all of them and rescale their E4M3 block scales",
		Loaders: []string{"vLLM", "SGLang", "TensorRT-LLM"}, Sources: []string{"vllm-project/vllm#54974", "vllm-project/vllm#47515", "vllm-project/vllm#55073", "NVIDIA/TensorRT-LLM#14199", "NVIDIA/TensorRT-LLM#18772"}, check: checkOuterEqual,
	},
	{
		ID: "outer-reciprocal", Title: "a global scale is stored as its reciprocal", Severity: Error, Data: true,
		Consequence: "weights are off by the square of the scale, a factor of millions", Mend: "store 2688/amax as weight_global_scale, amax/2688 as weight_scale_2",
		Loaders: everyone, Sources: []string{"modular/modular#6600", "modular/modular#6699", "vllm-project/vllm#42549"}, check: checkReciprocal,
	},
	{
		ID: "e8m0-bias", Title: "E8M0 scales have another bias", Severity: Error, Data: true,
		Consequence: "all weights are off by a power of two", Mend: "write bytes of bias 127",
		Loaders: everyone, Sources: []string{"vllm-project/compressed-tensors#538"}, check: checkBias,
	},
	{
		ID: "e8m0-old-writer", Title: "MXFP4 of a compressed-tensors that wrote bias 125", Severity: Warning,
		Consequence: "all weights may be a quarter of what they were", Mend: "quantize again with compressed-tensors 0.13 or later, or compare with the source",
		Loaders: everyone, Sources: []string{"vllm-project/compressed-tensors#538"}, check: checkOldWriter,
	},
	{
		ID: "e8m0-as-numbers", Title: "scales are E8M0 bytes taken as numbers", Severity: Error, Data: true,
		Consequence: "weights are off by many powers of two: the byte 120 is 2^-7, not 120", Mend: "store 2^(byte-127), or the bytes as F8_E8M0",
		Loaders: everyone, Sources: []string{"vllm-project/vllm#51946", "vllm-project/vllm#43416"}, check: checkNumbers,
	},
	{
		ID: "ue8m0-broken", Title: "scale_fmt is ue8m0 and scales are no powers of two", Severity: Error, Data: true,
		Consequence: "DeepGEMM's packing stops, or drops the mantissas of scales", Mend: "requantize with scales that are powers of two, or remove scale_fmt",
		Loaders: servers, Sources: []string{"sgl-project/sglang#29993", "sgl-project/sglang#13067", "sgl-project/sglang#28662", "sgl-project/sglang#39193", "huggingface/transformers#47030", "vllm-project/vllm#22399"}, check: checkPowersOfTwo,
	},
	{
		ID: "ue8m0-late", Title: "codes were made before scales were rounded to powers of two", Severity: Error, Data: true,
		Consequence: "weights are off by up to a factor of two, block by block", Mend: "round the scale first, quantize with the rounded one, and store that",
		Loaders: everyone, Sources: []string{"huggingface/transformers#46763", "sgl-project/sglang#28418", "kekzl/imp#250"}, check: checkRoundedLate,
	},
	{
		ID: "ue8m0-undeclared", Title: "all scales are powers of two and scale_fmt is absent", Severity: Info, Data: true,
		Consequence: "loaders for Blackwell requantize for nothing", Mend: `declare "scale_fmt": "ue8m0"`,
		Loaders: servers, Sources: []string{"vllm-project/vllm#58157", "vllm-project/vllm#22399"}, check: checkPowersUndeclared,
	},
	{
		ID: "codes-nan", Title: "codes are NaN", Severity: Error, Data: true,
		Consequence: "every output that they reach is NaN", Mend: "quantize the weight again: it was cast without saturation, or divided by a scale of 0",
		Loaders: everyone, Sources: []string{"NVIDIA/Model-Optimizer#1382"}, check: checkCodesNaN,
	},
	{
		ID: "codes-low", Title: "the largest code of a block is less than half of the largest there is", Severity: Warning, Data: true,
		Consequence: "codes and scales do not belong together, or precision was thrown away", Mend: "quantize the weight again and write both",
		Loaders: everyone, Sources: []string{"huggingface/transformers#47145"}, check: checkCodesLow,
	},
	{
		ID: "codes-clipped", Title: "more than 5% of a block is the largest code", Severity: Warning, Data: true,
		Consequence: "large weights were cut off", Mend: "quantize again with the scale of the largest magnitude",
		Loaders: everyone, Sources: []string{"NVIDIA/Model-Optimizer#1382"}, check: checkCodesClipped,
	},
}
