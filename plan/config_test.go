package plan_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/plan"
)

// configs have the members of published files that say how a model is built, in short.
var configs = map[string]string{
	"llama-3-8b": `{"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "vocab_size": 128256,
		"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "attention_bias": false}`,
	"deepseek-v2": `{"model_type": "deepseek_v2", "num_hidden_layers": 60, "hidden_size": 5120, "vocab_size": 102400,
		"num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 12288, "q_lora_rank": 1536, "kv_lora_rank": 512,
		"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 160, "n_shared_experts": 2,
		"num_experts_per_tok": 6, "moe_intermediate_size": 1536, "first_k_dense_replace": 1, "moe_layer_freq": 1,
		"topk_method": "group_limited_greedy"}`,
	"deepseek-v3": `{"model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "vocab_size": 129280,
		"num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432, "q_lora_rank": 1536, "kv_lora_rank": 512,
		"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256, "n_shared_experts": 1,
		"num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "topk_method": "noaux_tc",
		"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}`,
	"kimi-k2": `{"model_type": "kimi_k2", "num_hidden_layers": 61, "hidden_size": 7168, "vocab_size": 163840,
		"num_attention_heads": 64, "num_key_value_heads": 64, "intermediate_size": 18432, "q_lora_rank": 1536, "kv_lora_rank": 512,
		"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 384, "n_shared_experts": 1,
		"num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 1, "topk_method": "noaux_tc"}`,
	"gpt-oss-120b": `{"model_type": "gpt_oss", "num_hidden_layers": 36, "hidden_size": 2880, "vocab_size": 201088,
		"num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "num_local_experts": 128,
		"num_experts_per_tok": 4, "sliding_window": 128, "attention_bias": true, "layer_types": ["sliding_attention", "full_attention"]}`,
	"mixtral-8x7b": `{"model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096, "vocab_size": 32000,
		"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "num_local_experts": 8,
		"num_experts_per_tok": 2, "sliding_window": null}`,
	"qwen3-32b": `{"model_type": "qwen3", "num_hidden_layers": 64, "hidden_size": 5120, "vocab_size": 151936,
		"num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 25600, "use_sliding_window": false}`,
}

// TestReadModel reads what the table of known models has, from a file, a directory, and as the
// text of a model of more.
func TestReadModel(t *testing.T) {
	for name, text := range configs {
		want, err := plan.Named(name)
		require.NoError(t, err)
		counts, err := want.Parameters()
		require.NoError(t, err)
		dir := t.TempDir()
		file := filepath.Join(dir, checkpoint.ConfigName)
		for _, content := range []string{text, `{"model_type": "of_more", "text_config": ` + text + `}`} {
			require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
			for _, path := range []string{dir, file} {
				m, err := plan.ReadModel(path)
				require.NoError(t, err)
				got, err := m.Parameters()
				require.NoError(t, err)
				require.Equal(t, counts, got, name)
				m.Name, m.Source, m.Published = want.Name, want.Source, want.Published // which is not in all configs
				if want.KVHeads == 0 {                                                 // known models leave out what is usual
					m.KVHeads = 0
				}
				if want.HeadDim == 0 {
					m.HeadDim = 0
				}
				require.Equal(t, want, m)
			}
		}
	}
}

func TestReadModelErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.json")
	_, err := plan.ReadModel(dir)
	require.ErrorIs(t, err, checkpoint.ErrConfig)
	require.ErrorContains(t, err, file+": there is no such file")
	_, err = plan.ReadModel(filepath.Join(dir, "absent.json"))
	require.ErrorIs(t, err, checkpoint.ErrConfig)
	for _, c := range []struct{ text, want string }{
		{`[]`, "cannot unmarshal"},
		{`{}`, "model_type is absent: want one of deepseek_v2"},
		{`{"model_type": "bert"}`, `model_type is "bert"`},
		{`{"model_type": "llama"}`, "num_hidden_layers is absent: want a positive integer"},
		{`{"model_type": "llama", "num_hidden_layers": "x"}`, `num_hidden_layers is "x"`},
		{`{"model_type": "llama", "num_hidden_layers": -3}`, `num_hidden_layers is -3`},
		{`{"model_type": "llama", "num_hidden_layers": 100000, "hidden_size": 4, "vocab_size": 8, "num_attention_heads": 2, "intermediate_size": 8}`, "layers is 100000: want 1 to 65536"},
		{`{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 5, "vocab_size": 8, "num_attention_heads": 2, "intermediate_size": 8}`, "not a multiple of its 2 heads"},
		{`{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 6, "vocab_size": 8, "num_attention_heads": 3, "num_key_value_heads": 2, "intermediate_size": 8}`, "kvHeads is 2"},
		{`{"model_type": "mixtral", "num_hidden_layers": 1, "hidden_size": 6, "vocab_size": 8, "num_attention_heads": 3, "intermediate_size": 8, "num_local_experts": 2, "num_experts_per_tok": 3}`, "moe.topK is 3: want 1 to 2"},
		{`{"model_type": "qwen3_moe", "num_hidden_layers": 1, "hidden_size": 6, "vocab_size": 8, "num_attention_heads": 3, "moe_intermediate_size": 8, "num_experts": 2, "num_experts_per_tok": 2, "mlp_only_layers": [
			0,
			1
		]}`, "mlp_only_layers is [0,1]: want none"},
	} {
		require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		_, err := plan.ReadModel(file)
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, file)
	}
}

func TestNamedErrors(t *testing.T) {
	_, err := plan.Named("gpt-2")
	require.ErrorIs(t, err, plan.ErrModel)
	require.ErrorContains(t, err, `no model is called "gpt-2": want one of llama-3-8b,`)
	m, err := plan.Named("DeepSeek-V3")
	require.NoError(t, err)
	require.Equal(t, "deepseek-v3", m.Name)
	_, err = plan.NamedPrecision("fp7")
	require.ErrorIs(t, err, plan.ErrJob)
}
