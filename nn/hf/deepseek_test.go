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

// readDefinition reads a model that is stored as it is, by nothing but package safetensors.
func readDefinition(t *testing.T, dir string) *definition {
	t.Helper()
	d := &definition{weights: map[string][]float64{}}
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

// randomTensors returns random tensors for a configuration, as transformers has them. Latents are so
// small that the epsilon of their norms counts.
func randomTensors(t *testing.T, config string) []safetensors.Tensor {
	t.Helper()
	d := &definition{}
	require.NoError(t, json.Unmarshal([]byte(config), &d.config))
	r := randomizer{d: d, random: rand.New(rand.NewPCG(1, 2))}
	r.add("model.embed_tokens.weight", 1, d.size("vocab_size"), r.size("hidden_size"))
	for layer := range d.size("num_hidden_layers") {
		r.layer(layer, fmt.Sprintf("model.layers.%d.", layer))
	}
	r.add("model.norm.weight", 1, d.size("hidden_size"))
	if d.config["tie_word_embeddings"] != true {
		r.add("lm_head.weight", 0.3, d.size("vocab_size"), d.size("hidden_size"))
	}
	return r.all
}

// randomizer makes tensors of random numbers.
type randomizer struct {
	d      *definition
	random *rand.Rand
	all    []safetensors.Tensor
}

func (r *randomizer) size(key string) int { return r.d.size(key) }

func (r *randomizer) add(name string, scale float64, shape ...int) []byte {
	n, data := 1, []byte(nil)
	for _, k := range shape {
		n *= k
	}
	for range n {
		x := scale * r.random.NormFloat64()
		if strings.HasSuffix(name, "norm.weight") {
			x = 1 + 0.3*r.random.NormFloat64()
		}
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(x)))
	}
	r.all = append(r.all, safetensors.Tensor{
		Info: safetensors.Info{Name: name, DType: safetensors.F32, Shape: shape}, Data: data,
	})
	return data
}

// linear adds a matrix, and a bias if there is one.
func (r *randomizer) linear(name string, scale float64, rows, cols int, bias bool) {
	r.add(name+".weight", scale, rows, cols)
	if bias {
		r.add(name+".bias", 0.3, rows)
	}
}

func (r *randomizer) mlp(prefix string, hidden int) {
	dim, bias := r.size("hidden_size"), r.d.config["mlp_bias"] == true
	switch r.d.kind() {
	case "phi3", "glm", "glm4":
		r.add(prefix+"gate_up_proj.weight", 0.3, 2*hidden, dim)
	default:
		r.linear(prefix+"gate_proj", 0.3, hidden, dim, bias)
		r.linear(prefix+"up_proj", 0.3, hidden, dim, bias)
	}
	r.linear(prefix+"down_proj", 0.3, dim, hidden, bias)
}

func (r *randomizer) layer(layer int, prefix string) {
	d, dim, kind := r.d, r.size("hidden_size"), r.d.kind()
	norms := []string{"input_layernorm", "post_attention_layernorm"}
	switch kind {
	case "gemma3_text":
		norms = append(norms, "pre_feedforward_layernorm", "post_feedforward_layernorm")
	case "glm4":
		norms = append(norms, "post_self_attn_layernorm", "post_mlp_layernorm")
	}
	for _, name := range norms {
		r.add(prefix+name+".weight", 1, dim)
	}
	if r.size("kv_lora_rank") > 0 {
		r.latents(prefix + "self_attn.")
	} else {
		r.heads(prefix + "self_attn.")
	}
	listed, _ := d.config["mlp_only_layers"].([]any)
	dense := layer < r.size("first_k_dense_replace") || slices.Contains(listed, any(float64(layer))) ||
		(layer+1)%d.sizeOr("decoder_sparse_step", 1) != 0
	experts := d.sizeOr("n_routed_experts", d.sizeOr("num_local_experts", d.size("num_experts")))
	if dense || experts == 0 {
		r.mlp(prefix+"mlp.", r.size("intermediate_size"))
		return
	}
	r.experts(prefix, experts)
}

func (r *randomizer) experts(prefix string, experts int) {
	dim, hidden := r.size("hidden_size"), r.d.sizeOr("moe_intermediate_size", r.size("intermediate_size"))
	mlp := prefix + "mlp."
	switch r.d.kind() {
	case "mixtral":
		mlp = prefix + "block_sparse_moe."
		r.add(mlp+"gate.weight", 0.4, experts, dim)
		for e := range experts {
			of := fmt.Sprintf("%sexperts.%d.", mlp, e)
			r.add(of+"w1.weight", 0.3, hidden, dim)
			r.add(of+"w2.weight", 0.3, dim, hidden)
			r.add(of+"w3.weight", 0.3, hidden, dim)
		}
		return
	case "gpt_oss":
		r.linear(mlp+"router", 0.4, experts, dim, true)
		r.add(mlp+"experts.gate_up_proj", 0.3, experts, dim, 2*hidden)
		r.add(mlp+"experts.gate_up_proj_bias", 0.3, experts, 2*hidden)
		r.add(mlp+"experts.down_proj", 0.3, experts, hidden, dim)
		r.add(mlp+"experts.down_proj_bias", 0.3, experts, dim)
		return
	case "deepseek_v3", "glm4_moe":
		r.add(mlp+"gate.weight", 0.4, experts, dim)
		r.add(mlp+"gate.e_score_correction_bias", 0.3, experts)
	default:
		r.add(mlp+"gate.weight", 0.4, experts, dim)
	}
	for e := range experts {
		r.mlp(fmt.Sprintf("%sexperts.%d.", mlp, e), hidden)
	}
	if n := r.size("n_shared_experts"); n > 0 {
		r.mlp(mlp+"shared_experts.", n*hidden)
	}
}

func (r *randomizer) latents(attention string) {
	d, dim, heads, rank := r.d, r.size("hidden_size"), r.size("num_attention_heads"), r.size("kv_lora_rank")
	rope, value, bias := r.size("qk_rope_head_dim"), r.size("v_head_dim"), d.config["attention_bias"] == true
	key := r.size("qk_nope_head_dim") + rope
	if q := r.size("q_lora_rank"); q > 0 {
		r.linear(attention+"q_a_proj", 0.001, q, dim, bias)
		r.add(attention+"q_a_layernorm.weight", 1, q)
		r.add(attention+"q_b_proj.weight", 0.5, heads*key, q)
	} else {
		r.add(attention+"q_proj.weight", 0.4, heads*key, dim)
	}
	down := r.add(attention+"kv_a_proj_with_mqa.weight", 0.4, rank+rope, dim)
	for i := range rank * dim {
		x := math.Float32frombits(binary.LittleEndian.Uint32(down[4*i:])) / 400
		binary.LittleEndian.PutUint32(down[4*i:], math.Float32bits(x))
	}
	if bias {
		r.add(attention+"kv_a_proj_with_mqa.bias", 0.3, rank+rope)
	}
	r.add(attention+"kv_a_layernorm.weight", 1, rank)
	r.add(attention+"kv_b_proj.weight", 0.5, heads*(key-rope+value), rank)
	r.linear(attention+"o_proj", 0.3, dim, heads*value, bias)
}

func (r *randomizer) heads(attention string) {
	d, dim, heads, kind := r.d, r.size("hidden_size"), r.size("num_attention_heads"), r.d.kind()
	kv, head := d.sizeOr("num_key_value_heads", heads), d.sizeOr("head_dim", dim/heads)
	bias := d.config["attention_bias"] == true
	output := bias && kind != "glm" && kind != "glm4" && kind != "glm4_moe"
	bias = bias || kind == "qwen2"
	if kind == "phi3" {
		r.add(attention+"qkv_proj.weight", 0.2, (heads+2*kv)*head, dim)
	} else {
		r.linear(attention+"q_proj", 0.2, heads*head, dim, bias)
		r.linear(attention+"k_proj", 0.2, kv*head, dim, bias)
		r.linear(attention+"v_proj", 0.2, kv*head, dim, bias)
	}
	r.linear(attention+"o_proj", 0.3, dim, heads*head, output)
	if strings.HasPrefix(kind, "qwen3") || kind == "gemma3_text" || d.config["use_qk_norm"] == true {
		r.add(attention+"q_norm.weight", 1, head)
		r.add(attention+"k_norm.weight", 1, head)
	}
	if kind == "gpt_oss" {
		r.add(attention+"sinks", 1, heads)
	}
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
		tensors := randomTensors(t, config)
		dir := write(t, tensors, nil, config)
		want := readDefinition(t, dir)
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
	want := readDefinition(t, plain)
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
	tensors := randomTensors(t, fmt.Sprintf(deepseekConfig, ""))
	for more, want := range map[string]string{
		`, "scoring_func": "softmax"`:                      `scoring_func is "softmax": want "sigmoid": models of this architecture choose experts in no other way`,
		`, "topk_method": "greedy"`:                        `topk_method is "greedy": want "noaux_tc"`,
		`, "moe_layer_freq": 2`:                            `moe_layer_freq is 2: want 1: models of this architecture have experts in every layer`,
		`, "num_key_value_heads": 1`:                       `num_key_value_heads is 1: want 3, num_attention_heads`,
		`, "head_dim": 8`:                                  `head_dim is 8: want 6, qk_rope_head_dim`,
		`, "topk_group": null`:                             `topk_group is absent: want a positive integer`,
		`, "topk_group": 5`:                                `RouterConfig.TopGroups is 5: it must be from 1 to Groups = 4`,
		`, "n_group": 3`:                                   `RouterConfig.Groups is 3: it must divide Experts = 8`,
		`, "kv_lora_rank": 0`:                              `kv_lora_rank is 0: want a positive integer`,
		`, "q_lora_rank": -1`:                              `q_lora_rank is -1: want a positive integer`,
		`, "qk_rope_head_dim": 5`:                          `even`,
		`, "first_k_dense_replace": -1`:                    `first_k_dense_replace is -1: want an integer from 0 on`,
		`, "first_k_dense_replace": null`:                  `first_k_dense_replace is absent: want an integer from 0 on`,
		`, "n_shared_experts": 1.5`:                        `n_shared_experts is 1.5: want an integer from 0 on`,
		`, "n_shared_experts": 1`:                          `shared_experts.gate_proj.weight is [18 24]: want [9 24]`,
		`, "routed_scaling_factor": null`:                  `routed_scaling_factor is absent: want a positive number`,
		`, "rope_interleave": 1`:                           `rope_interleave is 1: want true or false`,
		`, "attention_bias": true`:                         `q_a_proj.bias is missing`,
		`, "mlp_bias": true`:                               `mlp_bias is true: want false`,
		`, "index_topk": 2048`:                             `index_topk is 2048: want none`,
		`, "n_routed_experts": 12`:                         `gate.weight is [8 24]: want [12 24]`,
		`, "n_routed_experts": 99999999`:                   `RouterConfig.Experts is 99999999: it must be from 1 to`,
		`, "num_hidden_layers": 1`:                         `model.layers.1.input_layernorm.weight, [24], is no part of a model as in`,
		`, "rope_scaling": {"type": "yarn", "mscale": -1}`: `rope_scaling.mscale is -1: want a number from 0 on`,
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
	tensors := randomTensors(t, config)
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
	tensors := randomTensors(t, config)
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
	for _, p := range published {
		f.Add([]byte(p.config))
	}
	weights := filepath.Join(f.TempDir(), "model.safetensors")
	tensors := randomTensors(&testing.T{}, fmt.Sprintf(deepseekConfig, ""))
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
