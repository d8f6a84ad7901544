package hf_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/safetensors"
)

// published are configurations as models on Hugging Face have them, with what they mean where
// something is to be understood.
var published = []struct {
	name, config string
	check        func(t *testing.T, c nn.Config)
}{
	{"Llama-3.1-8B", `{"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
		"bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "hidden_act": "silu", "hidden_size": 4096,
		"initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 131072, "mlp_bias": false,
		"model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
		"pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0,
		"high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
		"rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
		"transformers_version": "4.42.3", "use_cache": true, "vocab_size": 128256}`,
		func(t *testing.T, c nn.Config) {
			require.Equal(t, nn.RopeScaling{Factor: 8, Original: 8192, Low: 1, High: 4}, c.RopeScaling)
		}},
	{"Mistral-7B-v0.1", `{"architectures": ["MistralForCausalLM"], "bos_token_id": 1, "eos_token_id": 2,
		"hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
		"max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
		"num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
		"sliding_window": 4096, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
		"transformers_version": "4.34.0.dev0", "use_cache": true, "vocab_size": 32000}`,
		func(t *testing.T, c nn.Config) { require.Equal(t, 4096, c.Windows[31]) }},
	{"Mixtral-8x7B", `{"architectures": ["MixtralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1,
		"eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
		"intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mixtral",
		"num_attention_heads": 32, "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8,
		"num_local_experts": 8, "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
		"router_aux_loss_coef": 0.02, "sliding_window": null, "tie_word_embeddings": false,
		"torch_dtype": "bfloat16", "transformers_version": "4.36.0.dev0", "use_cache": true, "vocab_size": 32000}`,
		func(t *testing.T, c nn.Config) { require.Equal(t, 14336, c.Experts.Hidden) }},
	{"Qwen2.5-7B", `{"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
		"eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 3584, "initializer_range": 0.02,
		"intermediate_size": 18944, "max_position_embeddings": 32768, "max_window_layers": 28,
		"model_type": "qwen2", "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
		"rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072, "tie_word_embeddings": false,
		"torch_dtype": "bfloat16", "transformers_version": "4.43.1", "use_cache": true,
		"use_sliding_window": false, "vocab_size": 152064}`,
		func(t *testing.T, c nn.Config) {
			require.Nil(t, c.Windows)
			require.Equal(t, nn.Biases{QueryKeyValue: true}, c.Biases)
		}},
	{"Qwen3-30B-A3B", `{"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
		"bos_token_id": 151643, "decoder_sparse_step": 1, "eos_token_id": 151645, "head_dim": 128,
		"hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 6144,
		"max_position_embeddings": 40960, "max_window_layers": 48, "mlp_only_layers": [], "model_type": "qwen3_moe",
		"moe_intermediate_size": 768, "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128,
		"num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
		"output_router_logits": false, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000.0,
		"router_aux_loss_coef": 0.001, "sliding_window": null, "tie_word_embeddings": false,
		"torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true,
		"use_sliding_window": false, "vocab_size": 151936}`,
		func(t *testing.T, c nn.Config) { require.False(t, c.Experts.Router.Unnormalized) }},
	{"gemma-3-4b-it", `{"architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 255999,
		"eoi_token_index": 256000, "eos_token_id": [1, 106], "image_token_index": 262144,
		"initializer_range": 0.02, "mm_tokens_per_image": 256, "model_type": "gemma3", "text_config": {
		"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
		"rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024},
		"torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0", "vision_config": {"hidden_size": 1152,
		"image_size": 896, "model_type": "siglip_vision_model", "vision_use_head": false}}`,
		func(t *testing.T, c nn.Config) {
			require.Equal(t, []int{262208, 8, 4, 256}, []int{c.Vocab, c.Heads, c.KVHeads, c.HeadDim})
			require.Equal(t, []int{1024, 0, 1024}, c.Windows[4:7])
			require.Equal(t, nn.RopeScaling{Factor: 8}, c.RopeScaling)
			require.Equal(t, []float64{1e6, 1e4}, []float64{c.RopeTheta, c.WindowRopeTheta})
			require.True(t, c.TieHead && c.Norms.After && c.Norms.PlusOne && c.Norms.QueryKey)
		}},
	{"Phi-3-mini-128k", `{"architectures": ["Phi3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
		"auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}, "bos_token_id": 1, "embd_pdrop": 0.0,
		"eos_token_id": 32000, "hidden_act": "silu", "hidden_size": 24, "initializer_range": 0.02,
		"intermediate_size": 8192, "max_position_embeddings": 131072, "model_type": "phi3",
		"num_attention_heads": 4, "num_hidden_layers": 32, "num_key_value_heads": 4,
		"original_max_position_embeddings": 4096, "pad_token_id": 32000, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05,
		"rope_scaling": {"long_factor": [1.08, 1.11, 64], "short_factor": [1.0, 1.02, 2.0], "type": "longrope"},
		"rope_theta": 10000.0, "sliding_window": 262144, "tie_word_embeddings": false,
		"torch_dtype": "bfloat16", "transformers_version": "4.40.2", "use_cache": true, "vocab_size": 32064}`,
		func(t *testing.T, c nn.Config) {
			require.InDelta(t, math.Sqrt(1+math.Log(32)/math.Log(4096)), c.RopeScaling.Attention, 1e-12)
			require.Equal(t, 4096, c.RopeScaling.Original)
		}},
	{"GLM-4-9B-0414", `{"architectures": ["Glm4ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
		"eos_token_id": [151329, 151336, 151338], "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096,
		"initializer_range": 0.02, "intermediate_size": 13696, "max_position_embeddings": 32768,
		"model_type": "glm4", "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 2,
		"pad_token_id": 151329, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
		"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.52.0.dev0",
		"use_cache": true, "vocab_size": 151552}`,
		func(t *testing.T, c nn.Config) { require.Equal(t, 64, c.RotaryDim) }},
	{"GLM-4.5-Air", `{"architectures": ["Glm4MoeForCausalLM"], "attention_bias": true, "attention_dropout": 0.0,
		"eos_token_id": [151329, 151336, 151338], "first_k_dense_replace": 1, "head_dim": 128, "hidden_act": "silu",
		"hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 10944,
		"max_position_embeddings": 131072, "model_type": "glm4_moe", "moe_intermediate_size": 1408, "n_group": 1,
		"n_routed_experts": 128, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 96,
		"num_experts_per_tok": 8, "num_hidden_layers": 46, "num_key_value_heads": 8,
		"num_nextn_predict_layers": 1, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05, "rope_scaling": null,
		"rope_theta": 1000000, "routed_scaling_factor": 1.0, "tie_word_embeddings": false, "topk_group": 1,
		"torch_dtype": "bfloat16", "transformers_version": "4.54.0", "use_cache": true, "use_qk_norm": false,
		"vocab_size": 151552}`,
		func(t *testing.T, c nn.Config) {
			require.Equal(t, []int{128, 64}, []int{c.HeadDim, c.RotaryDim})
			require.Equal(t, nn.Biases{QueryKeyValue: true}, c.Biases)
		}},
	{"gpt-oss-20b", `{"architectures": ["GptOssForCausalLM"], "attention_bias": true, "attention_dropout": 0.0,
		"eos_token_id": 200002, "experts_per_token": 4, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880,
		"initial_context_length": 4096, "initializer_range": 0.02, "intermediate_size": 2880,
		"max_position_embeddings": 131072, "model_type": "gpt_oss", "num_attention_heads": 64,
		"num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8, "num_local_experts": 32,
		"output_router_logits": false, "pad_token_id": 199999, "quantization_config": {
		"modules_to_not_convert": ["lm_head"], "quant_method": "mxfp4"}, "rms_norm_eps": 1e-05,
		"rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
		"original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": false}, "rope_theta": 150000,
		"router_aux_loss_coef": 0.9, "sliding_window": 128, "swiglu_limit": 7.0, "tie_word_embeddings": false,
		"transformers_version": "4.55.0.dev0", "use_cache": true, "vocab_size": 201088}`,
		func(t *testing.T, c nn.Config) {
			require.Equal(t, []int{128, 0}, c.Windows[:2])
			require.InDelta(t, 0.1*math.Log(32)+1, c.RopeScaling.Attention, 1e-12)
			require.Equal(t, nn.Gate{Activation: nn.GateClamped, Alpha: 1.702, Limit: 7}, c.Gate)
		}},
	{"DeepSeek-V2-Lite", `{"architectures": ["DeepseekV2ForCausalLM"], "attention_bias": false,
		"attention_dropout": 0.0, "auto_map": {}, "aux_loss_alpha": 0.001, "bos_token_id": 100000,
		"eos_token_id": 100001, "first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 2048,
		"initializer_range": 0.02, "intermediate_size": 10944, "kv_lora_rank": 512,
		"max_position_embeddings": 163840, "model_type": "deepseek_v2", "moe_intermediate_size": 1408,
		"moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2,
		"norm_topk_prob": false, "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 27,
		"num_key_value_heads": 16, "pretraining_tp": 1, "q_lora_rank": null, "qk_nope_head_dim": 128,
		"qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_scaling": {"beta_fast": 32, "beta_slow": 1,
		"factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096,
		"type": "yarn"}, "rope_theta": 10000, "routed_scaling_factor": 1.0, "scoring_func": "softmax",
		"seq_aux": true, "tie_word_embeddings": false, "topk_group": 1, "topk_method": "greedy",
		"torch_dtype": "bfloat16", "transformers_version": "4.33.1", "use_cache": true, "v_head_dim": 128,
		"vocab_size": 102400}`,
		func(t *testing.T, c nn.Config) {
			require.Zero(t, c.RopeScaling.Attention)
			m := 0.1*0.707*math.Log(40) + 1
			require.InDelta(t, m*m/math.Sqrt(192), c.ScoreScale, 1e-12)
		}},
	{"Kimi-K2", `{"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
		"auto_map": {}, "aux_loss_alpha": 0.001, "bos_token_id": 163584, "eos_token_id": 163585,
		"ep_size": 1, "first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 7168,
		"initializer_range": 0.02, "intermediate_size": 18432, "kv_lora_rank": 512,
		"max_position_embeddings": 131072, "model_type": "kimi_k2", "moe_intermediate_size": 2048,
		"moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 384, "n_shared_experts": 1, "norm_topk_prob": true,
		"num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 61,
		"num_key_value_heads": 64, "num_nextn_predict_layers": 0, "pretraining_tp": 1, "q_lora_rank": 1536,
		"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "quantization_config": {"activation_scheme": "dynamic",
		"fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]}, "rms_norm_eps": 1e-06,
		"rope_theta": 50000.0, "routed_scaling_factor": 2.827, "rope_scaling": {"beta_fast": 1.0,
		"beta_slow": 1.0, "factor": 32.0, "mscale": 1.0, "mscale_all_dim": 1.0,
		"original_max_position_embeddings": 4096, "type": "yarn"}, "scoring_func": "sigmoid", "seq_aux": true,
		"tie_word_embeddings": false, "topk_group": 1, "topk_method": "noaux_tc", "torch_dtype": "bfloat16",
		"transformers_version": "4.48.3", "use_cache": true, "v_head_dim": 128, "vocab_size": 163840}`,
		func(t *testing.T, c nn.Config) { require.True(t, c.RopeScaling.YaRN) }},
}

func TestPublished(t *testing.T) {
	one := []safetensors.Tensor{{Info: safetensors.Info{Name: "x", DType: safetensors.U8, Shape: []int{1}}, Data: []byte{1}}}
	for _, p := range published {
		c, err := hf.Config(open(t, write(t, one, nil, p.config)))
		require.NoError(t, err, p.name)
		p.check(t, c)
	}
}
