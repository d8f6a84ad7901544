// Package hf reads models of Hugging Face into package nn, writes them, and finds the
// largest inputs of their layers.
//
// # Models
//
// A model is a [checkpoint.Checkpoint] whose config.json describes a Llama: that of
// LlamaForCausalLM, or of MistralForCausalLM, which is the same within its sliding window; or
// a mixture of experts with latent attention, that of DeepseekV3ForCausalLM. Its weights may
// be in any layout that package checkpoint reads; they become FP32 values. Grouped keys and
// values, a tied head, every rope_theta, and rotary positions that are scaled as in Llama 3 or
// linearly are fine. What package nn does not compute is refused by
// its name: biases, activations other than silu, heads whose size is not
// hidden_size/num_attention_heads, other scaling of positions, other architectures.
// Scales of inputs that calibration found play no part.
//
// # The order of rotary positions
//
// Hugging Face rotates the elements i and i+n/2 of a head of n elements; package nn rotates
// 2i and 2i+1, as Meta and llama2.c do. The rows of q_proj and k_proj are put in that order
// when a model is read, and back when it is written. Scores of attention are sums over a
// head, in another order: they differ from those of transformers by rounding alone. A
// recipe whose blocks have several rows finds other amaxes in q_proj and k_proj than a
// converter of the files does, unless their height is a multiple of that of a head.
//
// DeepSeek-V3 has the order of package nn, unless rope_interleave is false: then the rows of
// q_b_proj and kv_a_proj_with_mqa that are rotated change places.
//
// # DeepSeek-V3
//
// The biases of experts are mlp.gate.e_score_correction_bias; how fast they are moved and the
// factor of the balance loss have no names, nor has a capacity, with which a model is not
// written. In the norms of latents 1e-6 is added whatever rms_norm_eps is, as in transformers.
// Groups of experts are chosen by the sums of two scores, and by those of TopK/TopGroups in
// package nn: where that is not two, such a model is refused, and so is YaRN.
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
// transformers (models/llama/configuration_llama.py, modeling_llama.py and
// convert_llama_weights_to_hf.py, models/mistral/configuration_mistral.py,
// models/deepseek_v3/configuration_deepseek_v3.py, modular_deepseek_v3.py,
// modeling_rope_utils.py).
package hf
