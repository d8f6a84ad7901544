// Package hf reads models of Hugging Face into package nn, writes them, and finds the
// largest inputs of their layers.
//
// # Models
//
// A model is a [checkpoint.Checkpoint] whose config.json describes a Llama: that of
// LlamaForCausalLM, or of MistralForCausalLM, which is the same within its sliding window.
// Its weights may be in any layout that package checkpoint reads; they become FP32 values.
// Grouped keys and values, a tied head, every rope_theta, and rotary positions that are
// scaled as in Llama 3 or linearly are fine. What package nn does not compute is refused by
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
// modeling_rope_utils.py).
package hf
