// Package hf reads models of Hugging Face into package nn, writes them, and finds the
// largest inputs of their layers.
//
// # Models
//
// A model is a [checkpoint.Checkpoint] whose config.json is of one of these architectures of
// transformers, as version 4 or 5 writes it:
//
//	LlamaForCausalLM                 biases, sizes of heads, and positions that are scaled linearly
//	                                 or as in Llama 3, YaRN, LongRoPE and dynamic NTK, as all
//	MistralForCausalLM               a sliding window
//	MixtralForCausalLM               experts
//	Qwen2ForCausalLM                 windows by layer
//	Qwen3ForCausalLM                 norms of queries and keys
//	Qwen3MoeForCausalLM              with experts, in all layers or some
//	Gemma3ForCausalLM                text, also that of Gemma3ForConditionalGeneration
//	Phi3ForCausalLM                  fused weights, LongRoPE
//	GlmForCausalLM, Glm4ForCausalLM  heads that are rotated in part
//	Glm4MoeForCausalLM               with experts
//	GptOssForCausalLM                in BF16 and MXFP4
//	DeepseekV3ForCausalLM            Kimi K2, too
//	DeepseekV2ForCausalLM
//
// Its weights may be in any layout that package checkpoint reads; they become FP32 values.
// Scales of inputs that calibration found play no part. Results are those of transformers but for
// roundings of float32.
//
// A member of config.json that this package does not know is an error which names it, unless it is
// null or false, its name begins with an underscore, or it is among those that change no number: of
// files, tokens, generation, training, and of what a model returns beside logits. So is a value
// that package nn does not compute. What the class of transformers does not read, such as
// attn_logit_softcapping of Gemma 3 or norm_topk_prob of DeepSeek-V2, is not read here either.
// Positions that are scaled by dynamic NTK are those of sequences no longer than
// max_position_embeddings, which are not scaled. DeepSeek-V2 multiplies scores by what
// mscale_all_dim says, as its authors do, and transformers since pull request 47435; 5.12 does not.
//
// # Where tensors are
//
// Parameters of package nn have the names of a Llama and of DeepSeek-V3. In files experts may be
// apart or stacks of all, [experts, 2·hidden, dim] with rows of gate before those of up, and, of
// gpt-oss in BF16, [experts, dim, 2·hidden] with columns in turn; Phi-3 has queries, keys and
// values in one tensor, and it and GLM-4 gate and up. [Save] and [Calibrate] use the names of the
// files of a checkpoint that is given to them as Like.
//
// # The order of rotary positions
//
// Hugging Face rotates the elements i and i+n/2 of a head of which n elements are rotated; package
// nn rotates 2i and 2i+1, as Meta and llama2.c do. The rows of q_proj and k_proj, of their biases,
// and the gains of their norms are put in that order when a model is read, and back when it is
// written. Scores of attention are sums over a head, in another order: they differ from those of
// transformers by rounding alone. A recipe whose blocks have several rows finds other amaxes in
// q_proj and k_proj than a converter of the files does, unless their height is a multiple of that
// of a head.
//
// GLM-4, but for its mixture, and DeepSeek have the order of package nn, DeepSeek-V3 unless
// rope_interleave is false: then the rows of q_b_proj and kv_a_proj_with_mqa that are rotated
// change places.
//
// # DeepSeek-V3
//
// The biases of experts are mlp.gate.e_score_correction_bias; how fast they are moved and the
// factor of the balance loss have no names, nor has a capacity, with which a model is not
// written. In the norms of latents 1e-6 is added whatever rms_norm_eps is, as in transformers.
//
// # Without config.json
//
// A safetensors file may say in its metadata what config.json would, with each value as
// text, and how its rows are ordered:
//
//	rope                 "interleaved pairs, theta 10000" or "rotated halves, theta 10000"
//	hidden_size          "64", and likewise intermediate_size, num_hidden_layers,
//	                     num_attention_heads and vocab_size
//	num_key_value_heads  where that is not num_attention_heads
//	rms_norm_eps         "1e-05" if it is absent, as in llama2.c
//	tie_word_embeddings  if it is absent, whether lm_head.weight is
//
// # Sources
//
// transformers 5.12 (models/*/configuration_*.py and modeling_*.py of the architectures,
// modeling_rope_utils.py, models/llama/convert_llama_weights_to_hf.py).
package hf
