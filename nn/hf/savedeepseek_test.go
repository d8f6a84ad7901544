package hf_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestSaveDeepSeek saves mixtures that have moved their biases: what is written computes what
// they do by the report's equations, and what is read has the same bits.
func TestSaveDeepSeek(t *testing.T) {
	mla := nn.MLAConfig{QueryRank: 14, KVRank: 10, NoPE: 4, RoPE: 6, Value: 8, NormEps: 1e-6}
	direct := mla
	direct.QueryRank, direct.NormEps = 0, 0
	experts := nn.ExpertsConfig{Hidden: 12, Shared: 2, Router: nn.RouterConfig{
		Experts: 8, TopK: 2, BiasRate: 0.25, BalanceLoss: 0.01,
	}}
	grouped := experts
	grouped.Shared = 0
	grouped.Router = nn.RouterConfig{
		Experts: 8, TopK: 4, Groups: 4, TopGroups: 2, Scale: 1.5, Unnormalized: true, BiasRate: 0.25,
	}
	unbiased := experts
	unbiased.Router.BiasRate = 0
	for name, c := range map[string]nn.Config{
		"usual":    {MLA: &mla, Experts: &experts, Dense: 1},
		"grouped":  {MLA: &direct, NormEps: 1e-6, Experts: &grouped, RopeTheta: 300},
		"linear":   {MLA: &mla, Experts: &experts, RopeScaling: nn.RopeScaling{Factor: 1}},
		"unbiased": {MLA: &mla, Experts: &unbiased},
		"dense":    {MLA: &mla},
	} {
		c.Vocab, c.Dim, c.Layers, c.Heads, c.Hidden, c.Context = 256, 24, 3, 3, 20, 48
		m, err := nn.NewLlama(c, 5)
		require.NoError(t, err)
		for i, p := range m.Params() {
			if p.Decay {
				p.Randomize(1, uint64(i), 0.3)
			}
		}
		tokens := someDeepSeekTokens(256)
		_, err = m.Loss(t.Context(), tokens, tokens, 1, len(tokens))
		require.NoError(t, err)
		require.NoError(t, m.Backward(t.Context()))
		m.EndStep()
		want := logitsOf(t, m, tokens)
		for _, d := range []safetensors.DType{"", safetensors.BF16} {
			dir := t.TempDir()
			require.NoError(t, hf.Save(t.Context(), m, dir, hf.SaveOptions{Type: d, Bytes: true}))
			got, err := hf.Load(t.Context(), open(t, dir), hf.Options{})
			require.NoError(t, err, name)
			for i, b := range m.Blocks() {
				if b.Experts == nil {
					require.Nil(t, got.Blocks()[i].Experts)
					continue
				}
				bias := b.Experts.Router.Bias()
				if bias == nil {
					bias = make([]float32, 8)
				} else {
					require.Contains(t, bias, float32(-0.25))
				}
				require.Equal(t, bits(bias), bits(got.Blocks()[i].Experts.Router.Bias()), name)
			}
			if d == safetensors.BF16 {
				require.Less(t, distance(logitsOf(t, got, tokens), want), 0.5, name)
				continue
			}
			for i, p := range m.Params() {
				require.Equal(t, p.Name, got.Params()[i].Name)
				require.Equal(t, bits(p.Value), bits(got.Params()[i].Value), p.Name)
			}
			require.Equal(t, bits(want), bits(logitsOf(t, got, tokens)), name)
			if name != "dense" { // whose members for experts are left out
				require.Less(t, distance(want, readDefinition(t, dir).logits(tokens)), 2e-5, name)
			}
		}
	}
}

// TestSaveDeepSeekFiles: members and tensors as transformers has them.
func TestSaveDeepSeekFiles(t *testing.T) {
	m, err := nn.NewLlama(nn.Config{
		Vocab: 11, Dim: 24, Layers: 2, Heads: 3, Hidden: 20, Context: 16, NormEps: 1e-6, Dense: 1,
		MLA: &nn.MLAConfig{QueryRank: 14, KVRank: 10, NoPE: 4, RoPE: 6, Value: 8},
		Experts: &nn.ExpertsConfig{Hidden: 12, Shared: 1, Router: nn.RouterConfig{
			Experts: 2, TopK: 1, BiasRate: 0.001,
		}},
	}, 5)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, hf.Save(t.Context(), m, dir, hf.SaveOptions{Type: safetensors.BF16}))
	var config map[string]any
	readJSON(t, filepath.Join(dir, "config.json"), &config)
	require.Equal(t, map[string]any{
		"architectures": []any{"DeepseekV3ForCausalLM"}, "model_type": "deepseek_v3",
		"torch_dtype": "bfloat16", "vocab_size": 11.0, "hidden_size": 24.0,
		"intermediate_size": 20.0, "num_hidden_layers": 2.0, "num_attention_heads": 3.0,
		"num_key_value_heads": 3.0, "head_dim": 6.0, "max_position_embeddings": 16.0,
		"rms_norm_eps": 1e-6, "rope_theta": 10000.0, "rope_scaling": nil, "hidden_act": "silu",
		"tie_word_embeddings": false, "attention_bias": false, "bos_token_id": nil,
		"eos_token_id": nil, "q_lora_rank": 14.0, "kv_lora_rank": 10.0, "qk_nope_head_dim": 4.0,
		"qk_rope_head_dim": 6.0, "v_head_dim": 8.0, "rope_interleave": true,
		"first_k_dense_replace": 1.0, "num_nextn_predict_layers": 0.0, "n_routed_experts": 2.0,
		"n_shared_experts": 1.0, "num_experts_per_tok": 1.0, "n_group": 1.0, "topk_group": 1.0,
		"moe_intermediate_size": 12.0, "moe_layer_freq": 1.0, "norm_topk_prob": true,
		"routed_scaling_factor": 1.0, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
	}, config)
	f, err := safetensors.Open(filepath.Join(dir, "model.safetensors"))
	require.NoError(t, err)
	defer f.Close()
	attention := map[string][]int{
		"input_layernorm.weight": {24}, "post_attention_layernorm.weight": {24},
		"self_attn.q_a_proj.weight": {14, 24}, "self_attn.q_a_layernorm.weight": {14},
		"self_attn.q_b_proj.weight": {30, 14}, "self_attn.kv_a_proj_with_mqa.weight": {16, 24},
		"self_attn.kv_a_layernorm.weight": {10}, "self_attn.kv_b_proj.weight": {36, 10},
		"self_attn.o_proj.weight": {24, 24},
	}
	want := map[string][]int{
		"model.embed_tokens.weight": {11, 24}, "model.norm.weight": {24}, "lm_head.weight": {11, 24},
		"model.layers.1.mlp.gate.weight":                  {2, 24},
		"model.layers.1.mlp.gate.e_score_correction_bias": {2},
	}
	for name, shape := range attention {
		want["model.layers.0."+name], want["model.layers.1."+name] = shape, shape
	}
	for prefix, hidden := range map[string]int{
		"0.mlp.": 20, "1.mlp.experts.0.": 12, "1.mlp.experts.1.": 12, "1.mlp.shared_experts.": 12,
	} {
		want["model.layers."+prefix+"gate_proj.weight"] = []int{hidden, 24}
		want["model.layers."+prefix+"up_proj.weight"] = []int{hidden, 24}
		want["model.layers."+prefix+"down_proj.weight"] = []int{24, hidden}
	}
	got := map[string][]int{}
	for _, info := range f.Tensors() {
		got[info.Name] = info.Shape
		is := safetensors.BF16
		if strings.HasSuffix(info.Name, "bias") {
			is = safetensors.F32
		}
		require.Equal(t, is, info.DType, info.Name)
	}
	require.Equal(t, want, got)
}

func TestSaveDeepSeekRefuses(t *testing.T) {
	usual := func() nn.Config {
		return nn.Config{
			Vocab: 8, Dim: 8, Layers: 1, Heads: 2, Hidden: 8, Context: 8, NormEps: 1e-6,
			MLA:     &nn.MLAConfig{KVRank: 4, NoPE: 2, RoPE: 2, Value: 4},
			Experts: &nn.ExpertsConfig{Hidden: 4, Router: nn.RouterConfig{Experts: 8, TopK: 2}},
		}
	}
	dir := filepath.Join(t.TempDir(), "model")
	for want, change := range map[string]func(*nn.Config){
		"DeepseekV3ForCausalLM, the nearest, has not Config.Experts.CapacityFactor of 1.25: ":     func(c *nn.Config) { c.Experts.CapacityFactor = 1.25 },
		"DeepseekV2ForCausalLM, the nearest, has not Config.Experts.Router.Unnormalized of false": func(c *nn.Config) { c.Experts.Router.Score = nn.ScoreSoftmax },
		"has not Config.MLA.NormEps of 1e-05":                                                     func(c *nn.Config) { c.NormEps = 0 },
		"has not Config.MLA.NormEps of 0.001":                                                     func(c *nn.Config) { c.MLA.NormEps = 1e-3 },
		"has not Config.Experts.Router.GroupScores of 1":                                          func(c *nn.Config) { c.Experts.Router.Groups, c.Experts.Router.TopGroups = 4, 2 },
		"n_group is 8: want groups of two experts at least":                                       func(c *nn.Config) { c.Experts.Router.Groups, c.Experts.Router.TopGroups = 8, 8 },
		"n_group is 1: want groups of two experts at least":                                       func(c *nn.Config) { c.Experts.Router.Experts, c.Experts.Router.TopK = 1, 1 },
	} {
		c := usual()
		change(&c)
		m, err := nn.NewZeroLlama(c)
		require.NoError(t, err, want)
		err = hf.Save(t.Context(), m, dir, hf.SaveOptions{})
		require.ErrorIs(t, err, hf.ErrConfig)
		require.ErrorContains(t, err, want)
		require.NoDirExists(t, dir)
	}
	m, err := nn.NewZeroLlama(usual())
	require.NoError(t, err)
	require.NoError(t, hf.Save(t.Context(), m, dir, hf.SaveOptions{}))
}
