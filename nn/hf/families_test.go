package hf_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/safetensors"
)

// goldens returns the names of the models that transformers has computed results of.
func goldens(t *testing.T) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testutil.Shared(t, "models"), "*.golden.safetensors"))
	require.NoError(t, err)
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".golden.safetensors"))
	}
	require.GreaterOrEqual(t, len(names), 16)
	return names
}

// golden is what transformers computed of a model.
type golden struct {
	*safetensors.File
	Prompts map[string]struct {
		IDs           []int32 `json:"ids"`
		Loss          float64
		Float32Error  float64 `json:"logits_float32_error"`
		Tokens        []int32
		LogProbs      []float64
		ClosestSecond float64 `json:"closest_second"`
	}
}

func readGolden(t *testing.T, name string) (g golden) {
	t.Helper()
	path := testutil.Shared(t, "models", name+".json")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &g))
	g.File, err = safetensors.Open(strings.TrimSuffix(path, "json") + "golden.safetensors")
	require.NoError(t, err)
	t.Cleanup(func() { g.File.Close() })
	return g
}

// last returns the logits behind the last token, in float64.
func (g golden) last(t *testing.T, prompt string) []float64 {
	t.Helper()
	logits, err := safetensors.Elements[float64](g.File, prompt+".logits")
	require.NoError(t, err)
	return logits
}

// most returns the largest difference.
func most(got []float32, want []float64) (d float64) {
	for i, w := range want {
		d = math.Max(d, math.Abs(float64(got[i])-w))
	}
	return d
}

// TestDefinition: the definition by which the tests judge computes what transformers does.
func TestDefinition(t *testing.T) {
	for _, name := range goldens(t) {
		g, d := readGolden(t, name), readDefinition(t, testutil.Shared(t, "models", name))
		if d.kind() == "gpt_oss" {
			d.config["swiglu_alpha"], d.config["swiglu_limit"] = 1.702, 7.0
		}
		for prompt, p := range g.Prompts {
			all := d.logits(p.IDs)
			want := g.last(t, prompt)
			require.Less(t, most(all[len(all)-len(want):], want), 2e-5, "%s %s", name, prompt)
		}
	}
}

// logProb returns the logarithm of the probability of a token by logits.
func logProb(logits []float32, token int32) float64 {
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x))
	}
	return float64(logits[token]) - math.Log(sum)
}

// TestGoldenModels compares what a model of each family computes with what transformers does in
// float64: logits, losses, the stream between layers, and greedy tokens.
func TestGoldenModels(t *testing.T) {
	for _, name := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			g := readGolden(t, name)
			m, err := hf.Load(t.Context(), open(t, testutil.Shared(t, "models", name)), hf.Options{})
			require.NoError(t, err)
			vocab := m.Config().Vocab
			for prompt, p := range g.Prompts {
				if prompt == "short" {
					compareHidden(t, m, g, p.IDs)
				}
				logits := logitsOf(t, m, p.IDs)
				want := g.last(t, prompt)
				far := most(logits[len(logits)-vocab:], want)
				t.Logf("%-18s %-5s logits off by %.1e, transformers' float32 by %.1e", name, prompt, far, p.Float32Error)
				require.Less(t, far, 1e-4)
				loss := 0.0
				for i, id := range p.IDs[1:] {
					loss -= logProb(logits[i*vocab:][:vocab], id) / float64(len(p.IDs)-1)
				}
				require.InDelta(t, p.Loss, loss, 1e-5)
				compareTokens(t, m, p.IDs, p.Tokens, p.LogProbs, p.ClosestSecond)
			}
		})
	}
}

// compareHidden compares the streams before the first layer, between layers, and the last after
// the norm.
func compareHidden(t *testing.T, m *nn.Llama, g golden, ids []int32) {
	t.Helper()
	c, seen := m.Config(), 0
	m.Shared().Tap = func(name string, values []float32, _, _ int) {
		layer, ok := map[string]string{
			"model.embed_tokens.output": "0", "lm_head.input": string(rune('0' + c.Layers)),
		}[name]
		if rest, is := strings.CutPrefix(name, "model.layers."); is && strings.HasSuffix(rest, ".output") && strings.Count(rest, ".") == 1 {
			if n := rest[0] + 1; int(n-'0') < c.Layers {
				layer, ok = string(rune(n)), true
			}
		}
		if !ok {
			return
		}
		want, err := g.Float32s("short.hidden." + layer)
		require.NoError(t, err)
		require.Len(t, values, len(want))
		require.Less(t, distance(values, want), 1e-4, "%s, %s", name, layer)
		seen++
	}
	_, err := m.Logits(t.Context(), ids, 1, len(ids))
	require.NoError(t, err)
	m.Shared().Tap = nil
	require.GreaterOrEqual(t, seen, c.Layers)
}

// compareTokens goes on with the likeliest token, each time from the beginning.
func compareTokens(t *testing.T, m *nn.Llama, ids, tokens []int32, logProbs []float64, closest float64) {
	t.Helper()
	vocab := m.Config().Vocab
	sequence := append([]int32(nil), ids...)
	for i, want := range tokens {
		logits := logitsOf(t, m, sequence)
		last := logits[len(logits)-vocab:]
		best := int32(0)
		for id, x := range last {
			if x > last[best] {
				best = int32(id)
			}
		}
		if closest > 1e-4 {
			require.Equal(t, want, best, "token %d", i)
		}
		require.InDelta(t, logProbs[i], logProb(last, want), 1e-4)
		sequence = append(sequence, want)
	}
}

// variants are ways in which configurations of families may be told: members beside those of a
// golden model, and members that mean the same, by which the definition judges.
var variants = []struct{ of, more, means string }{
	{"llama", `"tie_word_embeddings": true, "num_key_value_heads": 1, "rms_norm_eps": 0.01`, ``},
	{"llama", `"num_key_value_heads": null, "hidden_act": "gelu"`, ``},
	{"llama", `"hidden_act": "gelu_pytorch_tanh", "mlp_bias": true`, ``},
	{"llama", `"hidden_act": "gelu_new", "attention_bias": true`, ``},
	{"llama", `"rope_parameters": null, "rope_theta": 500, "rope_scaling": {"type": "linear", "factor": 3}`, ``},
	{"llama", `"rope_parameters": {"rope_type": "dynamic", "rope_theta": 300, "factor": 4}`, ``},
	{"llama", `"rope_parameters": {"rope_type": "yarn", "rope_theta": 300, "factor": 4, "attention_factor": 1.3,
		"original_max_position_embeddings": 16, "beta_fast": 4, "beta_slow": 0.5}`, ``},
	{"llama", `"rope_parameters": {"rope_type": "yarn", "rope_theta": 300, "factor": 4, "truncate": false}, "max_position_embeddings": 50`, ``},
	{"llama", `"rope_parameters": {"rope_type": "llama3", "rope_theta": 300, "factor": 4, "low_freq_factor": 1,
		"high_freq_factor": 3}, "original_max_position_embeddings": 20`, ``},
	{"llama-headdim", `"attention_bias": true, "head_dim": 6`, ``},
	{"mistral-window", `"sliding_window": null, "head_dim": 24`, ``},
	{"mistral-window", `"sliding_window": 5`, ``},
	{"mixtral", `"sliding_window": 7, "head_dim": 24, "num_experts_per_tok": 3`, ``},
	{"mixtral", `"tie_word_embeddings": true, "num_experts_per_tok": 1, "hidden_act": "gelu"`, ``},
	{"qwen2", `"use_sliding_window": true, "sliding_window": 6, "max_window_layers": 1, "layer_types": null`,
		`"layer_types": ["full_attention", "sliding_attention", "sliding_attention"]`},
	{"qwen2", `"use_sliding_window": true, "sliding_window": 6, "head_dim": 20, "tie_word_embeddings": false,
		"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]`, ``},
	{"qwen3", `"attention_bias": true, "use_sliding_window": true, "sliding_window": 4,
		"layer_types": ["sliding_attention", "sliding_attention", "full_attention"]`, ``},
	{"qwen3", `"tie_word_embeddings": true, "num_key_value_heads": 4, "rms_norm_eps": 0.1`, ``},
	{"qwen3-moe", `"norm_topk_prob": false, "mlp_only_layers": [0, 2]`, ``},
	{"qwen3-moe", `"decoder_sparse_step": 2, "mlp_only_layers": null, "attention_bias": true`, ``},
	{"qwen3-moe", `"use_sliding_window": true, "sliding_window": 5, "num_local_experts": null, "num_experts": 6,
		"mlp_only_layers": []`, ``},
	{"gemma3", `"query_pre_attn_scalar": 50, "final_logit_softcapping": 3.0, "attention_bias": true`, ``},
	{"gemma3", `"layer_types": null, "sliding_window_pattern": 2, "_sliding_window_pattern": null, "sliding_window": 3,
		"rope_parameters": null, "rope_theta": 5000, "rope_local_base_freq": 70,
		"rope_scaling": {"rope_type": "linear", "factor": 8}`,
		`"layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention",
			"sliding_attention", "full_attention"],
		"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8, "rope_theta": 5000},
			"sliding_attention": {"rope_theta": 70}}`},
	{"gemma3", `"hidden_size": 60, "attn_logit_softcapping": 20.0, "tie_word_embeddings": false,
		"sliding_window": 4, "hidden_activation": "gelu"`, ``},
	{"phi3", `"rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 100.0}, "tie_word_embeddings": true`, ``},
	{"phi3", `"sliding_window": 6, "num_key_value_heads": 4`, ``},
	{"phi3", `"rope_parameters": null, "rope_theta": 100.0, "original_max_position_embeddings": 16,
		"rope_scaling": {"type": "longrope", "short_factor": [1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7],
			"long_factor": [1, 1.5, 2, 3, 4, 5, 6, 7]}`, ``},
	{"phi3", `"rope_parameters": {"rope_type": "longrope", "rope_theta": 100.0, "partial_rotary_factor": 0.75,
		"attention_factor": 1.2, "short_factor": [1, 1.1, 1.2, 1.3, 1.4, 1.5], "long_factor": [1, 1.5, 2, 3, 4, 5]}`, ``},
	{"glm4-moe", `"use_qk_norm": false, "attention_bias": true, "n_group": 4, "topk_group": 2, "num_experts_per_tok": 3`, ``},
	{"glm4-moe", `"routed_scaling_factor": 1.7, "norm_topk_prob": false, "n_shared_experts": 2, "first_k_dense_replace": 0,
		"rope_parameters": {"partial_rotary_factor": 0.25, "rope_theta": 100}, "partial_rotary_factor": 0.25`, ``},
	{"glm4-moe", glm + `"architectures": ["GlmForCausalLM"], "model_type": "glm"`, ``},
	{"glm4-moe", glm + `"architectures": ["Glm4ForCausalLM"], "model_type": "glm4", "attention_bias": false`, ``},
	{"gpt-oss", `"swiglu_limit": 0.5, "swiglu_alpha": 2.5`, ``},
	{"gpt-oss", `"sliding_window": 5, "attention_bias": false, "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
		"num_experts_per_tok": 4`, `"swiglu_limit": 7.0, "swiglu_alpha": 1.702`},
	{"gpt-oss", `"sliding_window": 9, "layer_types": null, "tie_word_embeddings": true,
		"rope_parameters": {"rope_type": "default", "rope_theta": 100}`,
		`"swiglu_limit": 7.0, "swiglu_alpha": 1.702,
		"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]`},
	{"gpt-oss", `"rope_parameters": null`, `"swiglu_limit": 7.0, "swiglu_alpha": 1.702, "rope_parameters": {
		"rope_type": "yarn", "rope_theta": 150000, "factor": 32, "truncate": false, "original_max_position_embeddings": 4096}`},
	{"deepseek-v3-yarn", `"rope_interleave": false, "attention_bias": true`, ``},
	{"deepseek-v3-yarn", `"model_type": "kimi_k2", "q_lora_rank": null, "tie_word_embeddings": true, "n_group": 1,
		"topk_group": 1, "rope_parameters": {"rope_type": "yarn", "rope_theta": 100, "factor": 4, "beta_fast": 1.0,
			"beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 16}`,
		`"model_type": "deepseek_v3"`},
	{"deepseek-v3", `"rope_interleave": false, "attention_bias": true, "q_lora_rank": null, "rms_norm_eps": 0.01`, ``},
	{"deepseek-v3-yarn", deepseekV2, ``},
	{"deepseek-v3", deepseekV2 + `, "topk_method": "group_limited_greedy", "routed_scaling_factor": 3,
		"n_shared_experts": 2, "q_lora_rank": null, "attention_bias": true`, ``},
}

const (
	glm = `"n_routed_experts": null, "n_shared_experts": null, "first_k_dense_replace": null, "n_group": null,
		"topk_group": null, "moe_intermediate_size": null, "num_experts_per_tok": null, "norm_topk_prob": null,
		"routed_scaling_factor": null, "use_qk_norm": null, "attention_bias": true, `
	deepseekV2 = `"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "rope_interleave": null,
		"topk_method": "greedy"`
)

// merged returns a configuration with members beside or in the place of its own.
func merged(t *testing.T, config map[string]any, more ...string) string {
	t.Helper()
	all := map[string]any{}
	for key, value := range config {
		all[key] = value
	}
	for _, m := range more {
		require.NoError(t, json.Unmarshal([]byte("{"+m+"}"), &all), m)
	}
	data, err := json.Marshal(all)
	require.NoError(t, err)
	return string(data)
}

// TestVariants compares models of random numbers with the definition, and with themselves once they
// were saved.
func TestVariants(t *testing.T) {
	tokens := someDeepSeekTokens(320)
	for _, v := range variants {
		name := v.of + ": " + v.more
		var config map[string]any
		readJSON(t, testutil.Shared(t, "models", v.of, "config.json"), &config)
		means := merged(t, config, v.more, v.means)
		dir := write(t, randomTensors(t, means), nil, means)
		d := readDefinition(t, dir)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(merged(t, config, v.more)), 0o644))
		c := open(t, dir)
		m, err := hf.Load(t.Context(), c, hf.Options{})
		require.NoError(t, err, name)
		for _, some := range [][]int32{tokens, tokens[:9]} {
			if far := distance(logitsOf(t, m, some), d.logits(some)); !(far < 3e-5) {
				t.Errorf("%s: %d tokens: logits are off by %v of the largest", name, len(some), far)
			}
		}
		saved := t.TempDir()
		require.NoError(t, hf.Save(t.Context(), m, saved, hf.SaveOptions{}), name)
		again, err := hf.Load(t.Context(), open(t, saved), hf.Options{})
		require.NoError(t, err, name)
		require.Equal(t, bits(logitsOf(t, m, tokens)), bits(logitsOf(t, again, tokens)), name)
	}
}

// TestSaveFamilies saves models like the checkpoints that they are from, which gives the same
// tensors and configuration, and as what they are, which computes the same.
func TestSaveFamilies(t *testing.T) {
	renamed := map[string]string{"phi3": "LlamaForCausalLM"} // which is the same, but for fused weights
	for _, name := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			path := testutil.Shared(t, "models", name)
			c, ids := open(t, path), readGolden(t, name).Prompts["long"].IDs
			m, err := hf.Load(t.Context(), c, hf.Options{})
			require.NoError(t, err)
			want := bits(logitsOf(t, m, ids))

			like := t.TempDir()
			require.NoError(t, hf.Save(t.Context(), m, like, hf.SaveOptions{Like: c}))
			requireSameTensors(t, path, like, true)
			var before, after map[string]any
			readJSON(t, filepath.Join(path, "config.json"), &before)
			readJSON(t, filepath.Join(like, "config.json"), &after)
			require.Equal(t, before, after)

			dir := t.TempDir()
			require.NoError(t, hf.Save(t.Context(), m, dir, hf.SaveOptions{Type: safetensors.BF16}))
			readJSON(t, filepath.Join(dir, "config.json"), &after)
			if architecture := renamed[name]; architecture != "" {
				require.Equal(t, []any{architecture}, after["architectures"])
			} else {
				require.Equal(t, before["architectures"], after["architectures"])
				requireSameTensors(t, path, dir, false)
			}
			again, err := hf.Load(t.Context(), open(t, dir), hf.Options{})
			require.NoError(t, err)
			require.Equal(t, want, bits(logitsOf(t, again, ids)))
		})
	}
}

// requireSameTensors compares the tensors of two directories: their bytes, or their values.
func requireSameTensors(t *testing.T, a, b string, bytes bool) {
	t.Helper()
	first, err := safetensors.Open(filepath.Join(a, "model.safetensors"))
	require.NoError(t, err)
	defer first.Close()
	second, err := safetensors.Open(filepath.Join(b, "model.safetensors"))
	require.NoError(t, err)
	defer second.Close()
	require.Len(t, second.Tensors(), len(first.Tensors()))
	for _, info := range first.Tensors() {
		got, ok := second.Info(info.Name)
		require.True(t, ok, info.Name)
		require.Equal(t, info.Shape, got.Shape, info.Name)
		x, err := first.Float32s(info.Name)
		require.NoError(t, err)
		y, err := second.Float32s(info.Name)
		require.NoError(t, err)
		require.Equal(t, x, y, info.Name)
		if bytes {
			require.Equal(t, info.DType, got.DType, info.Name)
		}
	}
}

// rewritten writes a golden model with other tensors and members of its configuration.
func rewritten(t *testing.T, name string, change func([]safetensors.Tensor) []safetensors.Tensor, more ...string) string {
	t.Helper()
	path := testutil.Shared(t, "models", name)
	f, err := safetensors.Open(filepath.Join(path, "model.safetensors"))
	require.NoError(t, err)
	defer f.Close()
	var all []safetensors.Tensor
	for _, info := range f.Tensors() {
		data, err := f.Bytes(info.Name)
		require.NoError(t, err)
		all = append(all, safetensors.Tensor{Info: info, Data: data})
	}
	var config map[string]any
	readJSON(t, filepath.Join(path, "config.json"), &config)
	return write(t, change(all), nil, merged(t, config, more...))
}

// fused puts experts, in the order of their numbers, into stacks, with rows of gate before those of up.
func fused(all []safetensors.Tensor) (out []safetensors.Tensor) {
	parts := map[string]safetensors.Tensor{}
	for _, x := range all {
		if parts[x.Name] = x; !strings.Contains(x.Name, ".experts.") {
			x.Name = strings.Replace(x.Name, ".block_sparse_moe.", ".mlp.", 1)
			out = append(out, x)
		}
	}
	for layer := range 3 {
		for _, names := range [][]string{{"gate_proj", "up_proj", "gate_up_proj"}, {"down_proj", "down_proj"}, {"w1", "w3", "gate_up_proj"}, {"w2", "down_proj"}} {
			var stack safetensors.Tensor
			for e := 0; ; e++ {
				for _, name := range names[:len(names)-1] {
					for _, block := range []string{"mlp", "block_sparse_moe"} {
						part, ok := parts[fmt.Sprintf("model.layers.%d.%s.experts.%d.%s.weight", layer, block, e, name)]
						if !ok {
							continue
						}
						stack.Data = append(stack.Data, part.Data...)
						stack.DType, stack.Shape = part.DType, []int{e + 1, part.Shape[0] * (len(names) - 1), part.Shape[1]}
					}
				}
				if stack.Shape == nil || stack.Shape[0] <= e {
					break
				}
			}
			if stack.Name = fmt.Sprintf("model.layers.%d.mlp.experts.%s", layer, names[len(names)-1]); stack.Shape != nil {
				out = append(out, stack)
			}
		}
	}
	return out
}

// textOfMore names tensors as in a model of more than text, and adds one of images.
func textOfMore(prefix string) func([]safetensors.Tensor) []safetensors.Tensor {
	return func(all []safetensors.Tensor) []safetensors.Tensor {
		for i := range all {
			all[i].Name = prefix + strings.TrimPrefix(all[i].Name, "model.")
		}
		image := all[0]
		image.Name = "vision_tower.vision_model.embeddings.patch_embedding.weight"
		return append(all, image)
	}
}

// TestOtherPlaces loads models whose tensors are at other places than transformers writes them to:
// they compute the same, and are saved as they were.
func TestOtherPlaces(t *testing.T) {
	var gemma map[string]any
	readJSON(t, testutil.Shared(t, "models", "gemma3", "config.json"), &gemma)
	delete(gemma, "tie_word_embeddings")
	text, err := json.Marshal(gemma)
	require.NoError(t, err)
	more := `"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "vision_config": {}, "text_config": ` + string(text)
	for name, dir := range map[string]string{
		"qwen3-moe": rewritten(t, "qwen3-moe", fused), "mixtral": rewritten(t, "mixtral", fused),
		"deepseek-v3": rewritten(t, "deepseek-v3", fused), "glm4-moe": rewritten(t, "glm4-moe", fused),
		"gemma3":  rewritten(t, "gemma3", textOfMore("language_model.model."), more),
		"gemma3 ": rewritten(t, "gemma3", textOfMore("model.language_model."), more),
	} {
		ids := readGolden(t, strings.TrimSpace(name)).Prompts["long"].IDs
		want, err := hf.Load(t.Context(), open(t, testutil.Shared(t, "models", strings.TrimSpace(name))), hf.Options{})
		require.NoError(t, err)
		c := open(t, dir)
		got, err := hf.Load(t.Context(), c, hf.Options{})
		require.NoError(t, err, name)
		require.Equal(t, bits(logitsOf(t, want, ids)), bits(logitsOf(t, got, ids)), name)
		if saved := t.TempDir(); strings.HasPrefix(name, "gemma3") {
			require.ErrorContains(t, hf.Save(t.Context(), got, saved, hf.SaveOptions{Like: c}), "vision_tower")
		} else {
			require.NoError(t, hf.Save(t.Context(), got, saved, hf.SaveOptions{Like: c}))
			requireSameTensors(t, dir, saved, true)
		}
	}
}

// TestGptOSSInMXFP4 loads gpt-oss with experts in its own layout, in which values have the bits that
// they have in BF16 after conversion.
func TestGptOSSInMXFP4(t *testing.T) {
	source, ids := testutil.Shared(t, "models", "gpt-oss"), readGolden(t, "gpt-oss").Prompts["short"].IDs
	var all [][]uint32
	for _, to := range []string{"gpt-oss", "bf16"} {
		layout, err := checkpoint.ParseLayout(to)
		require.NoError(t, err)
		plan, err := checkpoint.NewPlan(open(t, source), layout, checkpoint.PlanOptions{})
		require.NoError(t, err)
		source = t.TempDir()
		_, err = checkpoint.Convert(t.Context(), plan, source, checkpoint.Options{})
		require.NoError(t, err)
		c := open(t, source)
		if to == "gpt-oss" {
			require.NotNil(t, c.Weight("model.layers.0.mlp.experts.gate_up_proj").Scheme)
		}
		m, err := hf.Load(t.Context(), c, hf.Options{})
		require.NoError(t, err)
		all = append(all, bits(logitsOf(t, m, ids)))
	}
	require.Equal(t, all[0], all[1])
}

// TestConvertedFamilies converts models of all families: what they are quantized to loads, and
// predicts nearly as well. Maxima of their inputs have the names of modules in their files.
func TestConvertedFamilies(t *testing.T) {
	layout, err := checkpoint.ParseLayout("ct-fp8-dynamic")
	require.NoError(t, err)
	for _, name := range goldens(t) {
		c, p := open(t, testutil.Shared(t, "models", name)), readGolden(t, name).Prompts["long"]
		m, err := hf.Load(t.Context(), c, hf.Options{})
		require.NoError(t, err)
		amax, err := hf.Calibrate(t.Context(), m, [][]int32{p.IDs}, hf.CalibrationOptions{Like: c})
		require.NoError(t, err)
		for module := range amax {
			there := c.Weight(module+".weight") != nil || c.Weight(module) != nil // of stacks
			require.True(t, there || module == "lm_head", "%s: %s", name, module)
		}
		plan, err := checkpoint.NewPlan(c, layout, checkpoint.PlanOptions{})
		require.NoError(t, err, name)
		for _, s := range plan.Shards {
			for _, target := range s.Targets {
				if module := strings.TrimSuffix(target.Weight.Name, ".weight"); target.Scheme != nil && !strings.Contains(module, "experts.") {
					require.Contains(t, amax, module, name)
				}
			}
		}
		dir := t.TempDir()
		_, err = checkpoint.Convert(t.Context(), plan, dir, checkpoint.Options{})
		require.NoError(t, err, name)
		m, err = hf.Load(t.Context(), open(t, dir), hf.Options{})
		require.NoError(t, err, name)
		logits, vocab, loss := logitsOf(t, m, p.IDs), m.Config().Vocab, 0.0
		for i, id := range p.IDs[1:] {
			loss -= logProb(logits[i*vocab:][:vocab], id) / float64(len(p.IDs)-1)
		}
		require.InDelta(t, p.Loss, loss, 0.05, name)
		require.NotEqual(t, p.Loss, loss)
	}
}
