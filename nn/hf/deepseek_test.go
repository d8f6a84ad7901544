package hf_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/safetensors"
)

// readDeepSeek reads a model that is stored as it is, by nothing but package safetensors.
func readDeepSeek(t *testing.T, dir string) *deepseek {
	t.Helper()
	d := &deepseek{weights: map[string][]float64{}}
	readJSON(t, filepath.Join(dir, "config.json"), &d.config)
	paths, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	require.NoError(t, err)
	for _, path := range paths {
		f, err := safetensors.Open(path)
		require.NoError(t, err)
		for _, info := range f.Tensors() {
			values, err := f.Float32s(info.Name)
			require.NoError(t, err)
			for _, x := range values {
				d.weights[info.Name] = append(d.weights[info.Name], float64(x))
			}
		}
		require.NoError(t, f.Close())
	}
	return d
}

// deepseekConfig is of two layers, the first one dense, and of 8 experts in 4 groups, of which 2
// are chosen; %s is what takes the place of members before it.
const deepseekConfig = `{"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
	"vocab_size": 23, "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 2,
	"num_attention_heads": 3, "num_key_value_heads": 3, "max_position_embeddings": 256,
	"rms_norm_eps": 1e-6, "rope_theta": 100, "rope_scaling": null, "tie_word_embeddings": false,
	"attention_bias": false, "hidden_act": "silu", "q_lora_rank": 14, "kv_lora_rank": 10,
	"qk_nope_head_dim": 5, "qk_rope_head_dim": 6, "v_head_dim": 7, "first_k_dense_replace": 1,
	"moe_layer_freq": 1, "moe_intermediate_size": 9, "n_routed_experts": 8, "n_shared_experts": 2,
	"num_experts_per_tok": 4, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5,
	"scoring_func": "sigmoid", "topk_method": "noaux_tc", "norm_topk_prob": true%s}`

// deepseekTensors returns random tensors for a configuration. Latents are so small that the
// epsilon of their norms counts.
func deepseekTensors(t *testing.T, config string) (all []safetensors.Tensor) {
	t.Helper()
	d := &deepseek{}
	require.NoError(t, json.Unmarshal([]byte(config), &d.config))
	r := rand.New(rand.NewPCG(1, 2))
	add := func(name string, scale float64, shape ...int) []byte {
		n, data := 1, []byte(nil)
		for _, k := range shape {
			n *= k
		}
		for range n {
			x := scale * r.NormFloat64()
			if strings.HasSuffix(name, "norm.weight") {
				x = 1 + 0.3*r.NormFloat64()
			}
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(x)))
		}
		all = append(all, safetensors.Tensor{
			Info: safetensors.Info{Name: name, DType: safetensors.F32, Shape: shape}, Data: data,
		})
		return data
	}
	dim, heads, rank := d.size("hidden_size"), d.size("num_attention_heads"), d.size("kv_lora_rank")
	key, rope := d.size("qk_nope_head_dim")+d.size("qk_rope_head_dim"), d.size("qk_rope_head_dim")
	mlp := func(prefix string, hidden int) {
		add(prefix+"gate_proj.weight", 0.3, hidden, dim)
		add(prefix+"up_proj.weight", 0.3, hidden, dim)
		add(prefix+"down_proj.weight", 0.3, dim, hidden)
	}
	add("model.embed_tokens.weight", 1, d.size("vocab_size"), dim)
	for layer := range d.size("num_hidden_layers") {
		prefix := fmt.Sprintf("model.layers.%d.", layer)
		add(prefix+"input_layernorm.weight", 1, dim)
		add(prefix+"post_attention_layernorm.weight", 1, dim)
		attention := prefix + "self_attn."
		if q := d.size("q_lora_rank"); q > 0 {
			add(attention+"q_a_proj.weight", 0.001, q, dim)
			add(attention+"q_a_layernorm.weight", 1, q)
			add(attention+"q_b_proj.weight", 0.5, heads*key, q)
		} else {
			add(attention+"q_proj.weight", 0.4, heads*key, dim)
		}
		down := add(attention+"kv_a_proj_with_mqa.weight", 0.4, rank+rope, dim)
		for i := range rank * dim {
			x := math.Float32frombits(binary.LittleEndian.Uint32(down[4*i:])) / 400
			binary.LittleEndian.PutUint32(down[4*i:], math.Float32bits(x))
		}
		add(attention+"kv_a_layernorm.weight", 1, rank)
		add(attention+"kv_b_proj.weight", 0.5, heads*(key-rope+d.size("v_head_dim")), rank)
		add(attention+"o_proj.weight", 0.3, dim, heads*d.size("v_head_dim"))
		if layer < d.size("first_k_dense_replace") {
			mlp(prefix+"mlp.", d.size("intermediate_size"))
			continue
		}
		experts, hidden := d.size("n_routed_experts"), d.size("moe_intermediate_size")
		add(prefix+"mlp.gate.weight", 0.4, experts, dim)
		add(prefix+"mlp.gate.e_score_correction_bias", 0.3, experts)
		for e := range experts {
			mlp(fmt.Sprintf("%smlp.experts.%d.", prefix, e), hidden)
		}
		if n := d.size("n_shared_experts"); n > 0 {
			mlp(prefix+"mlp.shared_experts.", n*hidden)
		}
	}
	add("model.norm.weight", 1, dim)
	add("lm_head.weight", 0.3, d.size("vocab_size"), dim)
	return all
}

func someDeepSeekTokens(vocab int) (tokens []int32) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		tokens = append(tokens, int32(r.IntN(vocab)))
	}
	return tokens
}

func logitsOf(t *testing.T, m *nn.Llama, tokens []int32) []float32 {
	t.Helper()
	got, err := m.Logits(t.Context(), tokens, 1, len(tokens))
	require.NoError(t, err)
	return slices.Clone(got)
}

// deepseekVariants are ways in which a configuration may be told.
var deepseekVariants = map[string]string{
	"plain":          ``,
	"halves":         `, "rope_interleave": false`,
	"no latent":      `, "q_lora_rank": null`,
	"no latent, too": `, "q_lora_rank": null, "rope_interleave": false`,
	"unnormalized":   `, "norm_topk_prob": false, "routed_scaling_factor": 0.7`,
	"epsilon":        `, "rms_norm_eps": 1e-2`,
	"no groups":      `, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 3`,
	"none shared":    `, "n_shared_experts": null`,
	"all dense":      `, "first_k_dense_replace": 2`,
	"none dense":     `, "first_k_dense_replace": 0, "head_dim": 6, "topk_group": 4`,
}

// TestDeepSeek compares logits with those of the report's equations in float64. Another order of
// rows, another epsilon, other groups or no biases are off by far more than roundings.
func TestDeepSeek(t *testing.T) {
	tokens := someDeepSeekTokens(23)
	for name, more := range deepseekVariants {
		config := fmt.Sprintf(deepseekConfig, more)
		tensors := deepseekTensors(t, config)
		dir := write(t, tensors, nil, config)
		want := readDeepSeek(t, dir)
		require.Less(t, distance(logitsOf(t, load(t, dir), tokens), want.logits(tokens)), 2e-5, name)
		for changed, value := range map[string]any{
			"rope_interleave": want.config["rope_interleave"] == false, "rope_theta": 50.0,
			"norm_topk_prob": want.config["norm_topk_prob"] == false, "routed_scaling_factor": 1.0,
			"rms_norm_eps": 1e-4,
		} {
			if name == "all dense" && (changed == "norm_topk_prob" || changed == "routed_scaling_factor") {
				continue
			}
			other := *want
			other.config = maps.Clone(want.config)
			other.config[changed] = value
			got := distance(want.logits(tokens), other.logits(tokens))
			require.Greater(t, got, 2e-5, "%s: %s counts", name, changed)
		}
	}
}

// TestDeepSeekGolden: all layouts of one model have the values that are stored, dequantized, and
// the biases, and what it computes is that of the report's equations.
func TestDeepSeekGolden(t *testing.T) {
	plain := testutil.Shared(t, "golden", "checkpoints", "moe-bf16")
	want := readDeepSeek(t, plain)
	for name, most := range map[string]float64{ // from the largest weight of a matrix
		"moe-bf16": 0, "moe-deepseek-fp8": 0x1p-4, "moe-ct-nvfp4a16": 0x1p-2,
	} {
		m, err := hf.Load(t.Context(), open(t, testutil.Shared(t, "golden", "checkpoints", name)), hf.Options{})
		require.NoError(t, err, name)
		for _, p := range m.Params() {
			var values []float32
			for _, x := range want.weights[p.Name] {
				values = append(values, float32(x))
			}
			require.Len(t, p.Value, len(values))
			if far := distance(p.Value, values); !(far <= most) {
				require.True(t, math.IsNaN(far), "%s: %s: %v", name, p.Name, far) // all are 0
			}
		}
		for i, b := range m.Blocks()[1].Experts.Router.Bias() {
			require.Equal(t, want.weights["model.layers.1.mlp.gate.e_score_correction_bias"][i], float64(b))
		}
	}
	tokens := someDeepSeekTokens(want.size("vocab_size"))[:20]
	require.Less(t, distance(logitsOf(t, load128(t, plain), tokens), want.logits(tokens)), 2e-5)
}

func load128(t *testing.T, path string) *nn.Llama {
	t.Helper()
	m, err := hf.Load(t.Context(), open(t, path), hf.Options{Context: 128})
	require.NoError(t, err)
	return m
}

func TestDeepSeekRefused(t *testing.T) {
	tensors := deepseekTensors(t, fmt.Sprintf(deepseekConfig, ""))
	for more, want := range map[string]string{
		`, "scoring_func": "softmax"`:                      `scoring_func is "softmax": want "sigmoid": package nn knows no other way`,
		`, "topk_method": "greedy"`:                        `topk_method is "greedy": want "noaux_tc"`,
		`, "moe_layer_freq": 2`:                            `moe_layer_freq is 2: want 1: package nn has experts in every layer`,
		`, "num_key_value_heads": 1`:                       `num_key_value_heads is 1: want 3, num_attention_heads`,
		`, "head_dim": 8`:                                  `head_dim is 8: want 6, qk_rope_head_dim`,
		`, "num_experts_per_tok": 6`:                       `num_experts_per_tok is 6: want 4 or 5: with groups`,
		`, "topk_group": null`:                             `topk_group is absent: want a positive integer`,
		`, "topk_group": 5`:                                `RouterConfig.TopGroups is 5: it must be from 1 to Groups = 4`,
		`, "n_group": 3`:                                   `RouterConfig.Groups is 3: it must divide Experts = 8`,
		`, "kv_lora_rank": 0`:                              `kv_lora_rank is 0: want a positive integer`,
		`, "q_lora_rank": -1`:                              `q_lora_rank is -1: want a positive integer`,
		`, "qk_rope_head_dim": 5`:                          `MLAConfig.RoPE is 5: it must be even`,
		`, "first_k_dense_replace": -1`:                    `first_k_dense_replace is -1: want an integer from 0 on`,
		`, "first_k_dense_replace": null`:                  `first_k_dense_replace is absent: want an integer from 0 on`,
		`, "n_shared_experts": 1.5`:                        `n_shared_experts is 1.5: want an integer from 0 on`,
		`, "n_shared_experts": 1`:                          `shared_experts.gate_proj.weight is [18 24]: want [9 24]`,
		`, "routed_scaling_factor": null`:                  `routed_scaling_factor is absent: want a positive number`,
		`, "rope_interleave": 1`:                           `rope_interleave is 1: want true or false`,
		`, "attention_bias": true`:                         `attention_bias is true: want false`,
		`, "n_routed_experts": 12`:                         `gate.weight is [8 24]: want [12 24]`,
		`, "n_routed_experts": 99999999`:                   `RouterConfig.Experts is 99999999: it must be from 1 to`,
		`, "num_hidden_layers": 1`:                         `model.layers.1.input_layernorm.weight, [24], is no part of a model as in`,
		`, "rope_scaling": {"type": "yarn", "factor": 40}`: `rope_scaling.type is "yarn": want "default"`,
		`, "rope_scaling": {"type": "linear", "factor": 4, "mscale_all_dim": 1.0}`: `rope_scaling.mscale_all_dim is 1.0: want 0: package nn scales positions alone`,
	} {
		dir := write(t, tensors, nil, fmt.Sprintf(deepseekConfig, more))
		_, err := hf.Load(t.Context(), open(t, dir), hf.Options{})
		require.ErrorContains(t, err, want, more)
		require.ErrorContains(t, err, "hf: "+dir, more)
	}
}

// change returns tensors of which that of a name is another, or none.
func change(all []safetensors.Tensor, name string, data []byte) (changed []safetensors.Tensor) {
	for _, x := range all {
		if x.Name == name {
			if data == nil {
				continue
			}
			x.Data = data
		}
		changed = append(changed, x)
	}
	return changed
}

func TestDeepSeekBiases(t *testing.T) {
	const name = "model.layers.1.mlp.gate.e_score_correction_bias"
	config := fmt.Sprintf(deepseekConfig, "")
	tensors := deepseekTensors(t, config)
	_, err := hf.Load(t.Context(), open(t, write(t, change(tensors, name, nil), nil, config)), hf.Options{})
	require.ErrorIs(t, err, hf.ErrTensor)
	require.ErrorContains(t, err, name+" is missing")
	bad := make([]byte, 32)
	binary.LittleEndian.PutUint32(bad[12:], 0x7f800000)
	_, err = hf.Load(t.Context(), open(t, write(t, change(tensors, name, bad), nil, config)), hf.Options{})
	require.ErrorIs(t, err, hf.ErrTensor)
	require.ErrorContains(t, err, "model.safetensors: "+name+"[3] is +Inf: want a finite number")

	c := open(t, write(t, tensors, nil, config))
	for rate, ok := range map[float64]bool{0.01: true, 0: false} {
		m, err := hf.Load(t.Context(), c, hf.Options{Configure: func(c *nn.Config) {
			c.Experts.Router.BiasRate, c.Experts.Router.BalanceLoss = rate, 0.1
		}})
		if !ok {
			require.ErrorContains(t, err, "Options.Configure changes sizes or constants")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, rate, m.Config().Experts.Router.BiasRate)
	}
	_, err = hf.Load(t.Context(), c, hf.Options{
		Configure: func(c *nn.Config) { c.Experts.CapacityFactor = 1 },
	})
	require.ErrorContains(t, err, "Options.Configure changes sizes or constants")
	cfg, err := hf.Config(c)
	require.NoError(t, err)
	require.Equal(t, 0.001, cfg.Experts.Router.BiasRate)
	require.Zero(t, cfg.Experts.CapacityFactor)
}

// TestPredictedLayers: those behind the last one are left out where the configuration says that
// there are any, and what is left out is not read.
func TestPredictedLayers(t *testing.T) {
	config := fmt.Sprintf(deepseekConfig, "")
	tensors := deepseekTensors(t, config)
	want := logitsOf(t, load(t, write(t, tensors, nil, config)), someDeepSeekTokens(23))
	nan := []byte{0, 0, 0xc0, 0x7f}
	for _, name := range []string{"model.layers.2.eh_proj.weight", "model.layers.3.mlp.gate.weight"} {
		tensors = append(tensors, safetensors.Tensor{
			Info: safetensors.Info{Name: name, DType: safetensors.F32, Shape: []int{1, 1}}, Data: nan,
		})
	}
	got := load(t, write(t, tensors, nil, fmt.Sprintf(deepseekConfig, `, "num_nextn_predict_layers": 2`)))
	require.Equal(t, bits(want), bits(logitsOf(t, got, someDeepSeekTokens(23))))
	inner := append(slices.Clone(tensors), tensors[len(tensors)-1])
	inner[len(inner)-1].Name = "model.layers.1.mlp.extra"
	dir := write(t, inner, nil, fmt.Sprintf(deepseekConfig, `, "num_nextn_predict_layers": 2`))
	_, err := hf.Load(t.Context(), open(t, dir), hf.Options{})
	require.ErrorContains(t, err, "model.layers.1.mlp.extra, [1 1], is no part")
	for more, what := range map[string]string{
		``:                                 "model.layers.2.eh_proj.weight, [1 1], is no part",
		`, "num_nextn_predict_layers": 1`:  "model.layers.3.mlp.gate.weight, [1 1], is no part",
		`, "num_nextn_predict_layers": -1`: "num_nextn_predict_layers is -1: want an integer",
	} {
		dir := write(t, tensors, nil, fmt.Sprintf(deepseekConfig, more))
		_, err := hf.Load(t.Context(), open(t, dir), hf.Options{})
		require.ErrorContains(t, err, what)
	}
}

// FuzzConfig loads a model with any configuration.
func FuzzConfig(f *testing.F) {
	for _, more := range deepseekVariants {
		f.Add([]byte(fmt.Sprintf(deepseekConfig, more)))
	}
	f.Add([]byte(fmt.Sprintf(storiesConfig, `, "architectures": ["MistralForCausalLM"], "sliding_window": 3`)))
	f.Add([]byte(fmt.Sprintf(storiesConfig, `, "rope_scaling": {"rope_type": "llama3", "factor": 8,
		"low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8}`)))
	f.Add([]byte(fmt.Sprintf(deepseekConfig, `, "rope_scaling": {"type": "yarn", "mscale_all_dim": 1}`)))
	f.Add([]byte(fmt.Sprintf(deepseekConfig, `, "num_nextn_predict_layers": 9e9, "n_group": -1`)))
	weights := filepath.Join(f.TempDir(), "model.safetensors")
	tensors := deepseekTensors(&testing.T{}, fmt.Sprintf(deepseekConfig, ""))
	require.NoError(f, safetensors.WriteFile(weights, tensors, nil))
	f.Fuzz(func(t *testing.T, config []byte) {
		dir := t.TempDir()
		require.NoError(t, os.Symlink(weights, filepath.Join(dir, "model.safetensors")))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600))
		c, err := checkpoint.Open(dir)
		if err != nil {
			return
		}
		defer c.Close()
		m, err := hf.Load(t.Context(), c, hf.Options{})
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		cfg, err := hf.Config(c)
		require.NoError(t, err)
		require.Equal(t, cfg.Layers, len(m.Blocks()))
	})
}
