package hf

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/nn"
)

// family is what transformers has under one architecture: the configuration's class, by what it
// has where a member is absent and by the features that members are about, and where tensors are.
type family struct {
	architecture string
	types        string // model_type may be one of these, the first by default
	text         string // the member that the text's configuration is in, where the model has more than text
	defaults     string // members, in JSON
	features     []feature
	unread       string // members of the class that change no number

	interleaved bool // rows that are rotated are in the order of package nn
	layout
}

// feature is some members of a configuration: read gives their meaning to a description, and
// write, unless nil, sets members to what a configuration of package nn means.
type feature struct {
	read  func(d *described, f *fields)
	write func(c nn.Config, v members)
}

// members are those of a configuration that is written.
type members map[string]any

// members returns the defaults.
func (x family) members() (m map[string]json.RawMessage) {
	if err := json.Unmarshal([]byte("{"+x.defaults+"}"), &m); err != nil {
		panic("hf: defaults of " + x.architecture + ": " + err.Error())
	}
	return m
}

// families are those of transformers 5.12 that package nn runs (models/*/configuration_*.py). A
// model is saved as the first that has all of what it is made of.
var families = []family{
	{
		architecture: "LlamaForCausalLM", types: "llama",
		defaults: `"max_position_embeddings": 2048`,
		features: llamaLike(attentionBias, mlpBias),
	},
	{
		architecture: "MistralForCausalLM", types: "mistral",
		defaults: `"max_position_embeddings": 131072, "num_key_value_heads": 8, "sliding_window": 4096`,
		features: llamaLike(window),
	},
	{
		architecture: "MixtralForCausalLM", types: "mixtral",
		defaults: `"max_position_embeddings": 131072, "num_key_value_heads": 8, "rms_norm_eps": 1e-5,
			"rope_theta": 1e6, "num_local_experts": 8, "num_experts_per_tok": 2`,
		features: llamaLike(window, mixtralExperts),
		layout: layout{either: true, names: strings.NewReplacer(".mlp.", ".block_sparse_moe.",
			"gate_proj", "w1", "up_proj", "w3", "down_proj", "w2")},
	},
	{
		architecture: "Qwen2ForCausalLM", types: "qwen2",
		defaults: `"max_position_embeddings": 32768, "num_key_value_heads": 32, "sliding_window": 4096,
			"max_window_layers": 28`,
		features: llamaLike(always(func(c *nn.Config) { c.Biases.QueryKeyValue = true }), windowsFromLayer),
	},
	{
		architecture: "Qwen3ForCausalLM", types: "qwen3",
		defaults: `"max_position_embeddings": 32768, "num_key_value_heads": 32, "head_dim": 128,
			"sliding_window": 4096, "max_window_layers": 28`,
		features: llamaLike(attentionBias, normedHeads, windowsFromLayer),
	},
	{
		architecture: "Qwen3MoeForCausalLM", types: "qwen3_moe",
		defaults: `"max_position_embeddings": 32768, "num_key_value_heads": 4, "sliding_window": 4096,
			"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
			"decoder_sparse_step": 1`,
		features: llamaLike(attentionBias, normedHeads, windowIfUsed, qwenExperts),
		unread:   "max_window_layers use_qk_norm", // queries and keys are always normalized
	},
	{
		architecture: "Gemma3ForCausalLM", types: "gemma3_text",
		defaults: gemmaDefaults, features: gemma, unread: gemmaUnread, layout: layout{names: gemmaNames},
	},
	{
		architecture: "Gemma3ForConditionalGeneration", types: "gemma3", text: "text_config",
		defaults: gemmaDefaults, features: gemma, unread: gemmaUnread, layout: layout{names: gemmaNames},
	},
	{
		architecture: "Phi3ForCausalLM", types: "phi3",
		defaults: `"max_position_embeddings": 4096, "original_max_position_embeddings": 4096,
			"rms_norm_eps": 1e-5, "partial_rotary_factor": 1`,
		features: []feature{sizes, heads, eps, tied, activation, positions, phiRope, window, phiOnes, noBiases},
		layout:   layout{fusedHeads: true, fusedMLP: true},
	},
	{
		architecture: "GlmForCausalLM", types: "glm",
		defaults: glmDefaults, features: glm(), interleaved: true, layout: layout{fusedMLP: true},
	},
	{
		architecture: "Glm4ForCausalLM", types: "glm4",
		defaults: glmDefaults, interleaved: true, layout: layout{fusedMLP: true},
		features: glm(always(func(c *nn.Config) { c.Norms.After = true })),
	},
	{
		architecture: "Glm4MoeForCausalLM", types: "glm4_moe Glm4Moe",
		defaults: `"max_position_embeddings": 131072, "num_key_value_heads": 8, "rms_norm_eps": 1e-5,
			"partial_rotary_factor": 0.5, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
			"n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8,
			"moe_intermediate_size": 1408, "routed_scaling_factor": 1, "norm_topk_prob": true`,
		features: []feature{
			sizes, heads, eps, tied, activation, positions, partialRope, queryKeyValueBias,
			normedHeadsIfUsed, sigmoidExperts, noBiases,
		},
	},
	{
		architecture: "GptOssForCausalLM", types: "gpt_oss",
		defaults: `"max_position_embeddings": 131072, "num_key_value_heads": 8, "head_dim": 64,
			"rms_norm_eps": 1e-5, "rope_theta": 150000, "sliding_window": 128, "attention_bias": true,
			"num_local_experts": 128, "num_experts_per_tok": 4, "swiglu_alpha": 1.702, "swiglu_limit": 7,
			"rope_parameters": {"rope_type": "yarn", "factor": 32, "beta_fast": 32, "beta_slow": 1,
				"truncate": false, "original_max_position_embeddings": 4096}`,
		features: []feature{
			sizes, heads, eps, tied, positions, rope, attentionBias, windowsInTurn, gptOSSExperts,
		},
		unread: "hidden_act initial_context_length",
		layout: layout{names: strings.NewReplacer(".mlp.gate.", ".mlp.router."), inTurn: true},
	},
	{
		architecture: "DeepseekV3ForCausalLM", types: "deepseek_v3 kimi_k2",
		defaults: `"max_position_embeddings": 4096, "rope_interleave": true, "norm_topk_prob": true,
			"q_lora_rank": 1536, "n_shared_experts": 1`,
		features: []feature{
			sizes, eps, tied, activation, positions, latents, latentRope, interleave, sigmoidExperts, noBiases,
		},
		unread: "qk_head_dim",
	},
	{
		architecture: "DeepseekV2ForCausalLM", types: "deepseek_v2",
		defaults: `"max_position_embeddings": 2048, "first_k_dense_replace": 0, "n_shared_experts": 2,
			"routed_scaling_factor": 1, "topk_method": "greedy", "q_lora_rank": 1536`,
		features: []feature{
			sizes, eps, tied, activation, positions, latents, latentRope, softmaxExperts, noBiases,
		},
		unread:      "qk_head_dim norm_topk_prob", // transformers never divides by the sum
		interleaved: true,
	},
}

// llamaLike returns the features of a Llama, and more.
func llamaLike(more ...feature) []feature {
	return append(append([]feature{sizes, heads, eps, tied, activation, positions, rope}, more...), noBiases)
}

const glmDefaults = `"max_position_embeddings": 131072, "num_key_value_heads": 2, "head_dim": 128,
	"rms_norm_eps": 1.5625e-7, "partial_rotary_factor": 0.5, "attention_bias": true`

func glm(more ...feature) []feature {
	return append([]feature{
		sizes, heads, eps, tied, activation, positions, partialRope, queryKeyValueBias,
	}, append(more, noBiases)...)
}

const (
	gemmaDefaults = `"max_position_embeddings": 131072, "vocab_size": 262208, "hidden_size": 2304,
		"intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
		"num_key_value_heads": 4, "head_dim": 256, "rope_theta": 1e6, "rope_local_base_freq": 1e4,
		"tie_word_embeddings": true, "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 4096,
		"query_pre_attn_scalar": 256, "sliding_window_pattern": 6`

	// Attention of Gemma 3 has no cap, whatever its configuration says: that of Gemma 2 has.
	gemmaUnread = "hidden_act attn_logit_softcapping"
)

var (
	gemma = []feature{
		sizes, heads, eps, tied, gemmaActivation, positions, gemmaWindows, gemmaRope, attentionBias,
		normedHeads, gemmaScales, noBiases,
	}
	gemmaNames = strings.NewReplacer(
		".post_attention_layernorm.", ".pre_feedforward_layernorm.",
		".post_self_attn_layernorm.", ".post_attention_layernorm.",
		".post_mlp_layernorm.", ".post_feedforward_layernorm.")
)

// always is what a family has without saying so.
func always(set func(*nn.Config)) feature {
	return feature{read: func(d *described, _ *fields) { set(&d.Config) }}
}

var sizes = feature{
	func(d *described, f *fields) {
		d.Vocab = f.size("vocab_size")
		d.Dim = f.size("hidden_size")
		d.Hidden = f.size("intermediate_size")
		d.Layers = f.size("num_hidden_layers")
		d.Heads = f.size("num_attention_heads")
	},
	func(c nn.Config, v members) {
		v["vocab_size"], v["hidden_size"], v["intermediate_size"] = c.Vocab, c.Dim, c.Hidden
		v["num_hidden_layers"], v["num_attention_heads"] = c.Layers, c.Heads
	},
}

var heads = feature{
	func(d *described, f *fields) {
		d.KVHeads = f.sizeOr("num_key_value_heads", d.Heads)
		head := f.sizeOr("head_dim", 0)
		if f.err != nil {
			return
		}
		if whole := d.Dim%d.Heads == 0; head == 0 && !whole {
			f.refuse("hidden_size", "a multiple of num_attention_heads, which is "+strconv.Itoa(d.Heads)+
				", or head_dim")
		} else if !whole || head != d.Dim/d.Heads {
			d.HeadDim = head
		}
	},
	func(c nn.Config, v members) {
		v["num_key_value_heads"], v["head_dim"] = cmp.Or(c.KVHeads, c.Heads), headDim(c)
	},
}

// latentNormEps is added in norms of latents, whatever rms_norm_eps is.
const latentNormEps = 1e-6

// latents are MLA in the place of heads.
var latents = feature{
	func(d *described, f *fields) {
		d.MLA = &nn.MLAConfig{
			QueryRank: f.sizeOr("q_lora_rank", 0), KVRank: f.size("kv_lora_rank"),
			NoPE: f.size("qk_nope_head_dim"), RoPE: f.size("qk_rope_head_dim"),
			Value: f.size("v_head_dim"),
		}
		if d.NormEps != latentNormEps {
			d.MLA.NormEps = latentNormEps
		}
		if f.sizeOr("num_key_value_heads", d.Heads) != d.Heads {
			f.refuse("num_key_value_heads",
				strconv.Itoa(d.Heads)+", num_attention_heads: latent attention has keys of every head")
		}
		if f.sizeOr("head_dim", d.MLA.RoPE) != d.MLA.RoPE {
			f.refuse("head_dim", strconv.Itoa(d.MLA.RoPE)+", qk_rope_head_dim: no more is rotated")
		}
		attentionBias.read(d, f)
	},
	func(c nn.Config, v members) {
		m := c.MLA
		if m == nil {
			return
		}
		v["q_lora_rank"] = orNull(m.QueryRank)
		v["kv_lora_rank"], v["qk_nope_head_dim"], v["qk_rope_head_dim"] = m.KVRank, m.NoPE, m.RoPE
		v["v_head_dim"], v["num_key_value_heads"], v["head_dim"] = m.Value, c.Heads, m.RoPE
		v["num_nextn_predict_layers"] = 0
		attentionBias.write(c, v)
	},
}

// orNull returns a size, or nil for 0.
func orNull(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

var eps = feature{
	func(d *described, f *fields) { d.NormEps = f.number("rms_norm_eps", 1e-6) },
	func(c nn.Config, v members) { v["rms_norm_eps"] = c.NormEps },
}

var tied = feature{
	func(d *described, f *fields) { d.TieHead = f.truth("tie_word_embeddings") },
	func(c nn.Config, v members) { v["tie_word_embeddings"] = c.TieHead },
}

var positions = feature{
	func(d *described, f *fields) { d.readContext(f, 0) },
	func(c nn.Config, v members) { v["max_position_embeddings"] = c.Context },
}

var (
	activation      = activationOf("hidden_act")
	gemmaActivation = activationOf("hidden_activation")
)

// activations are transformers' names of what becomes of a gate, the usual one of each first.
var activations = []struct {
	name string
	is   nn.GateActivation
}{
	{"silu", nn.GateSiLU}, {"swish", nn.GateSiLU}, {"gelu", nn.GateGELU},
	{"gelu_pytorch_tanh", nn.GateGELUTanh}, {"gelu_new", nn.GateGELUTanh},
}

func activationOf(key string) feature {
	return feature{
		func(d *described, f *fields) {
			var names []string
			for _, a := range activations {
				names = append(names, a.name)
			}
			word := f.word(key, "package nn has no other activation", names...)
			if i := slices.Index(names, word); i >= 0 {
				d.Gate = nn.Gate{Activation: activations[i].is}
			}
		},
		func(c nn.Config, v members) {
			for _, a := range slices.Backward(activations) {
				if a.is == c.Gate.Activation {
					v[key] = a.name
				}
			}
		},
	}
}

var attentionBias = feature{
	func(d *described, f *fields) {
		set := f.truth("attention_bias")
		d.Biases.QueryKeyValue, d.Biases.Output = set, set
	},
	func(c nn.Config, v members) { v["attention_bias"] = c.Biases.QueryKeyValue },
}

var queryKeyValueBias = feature{
	func(d *described, f *fields) { d.Biases.QueryKeyValue = f.truth("attention_bias") },
	attentionBias.write,
}

var mlpBias = feature{
	func(d *described, f *fields) { d.Biases.MLP = f.truth("mlp_bias") },
	func(c nn.Config, v members) { v["mlp_bias"] = c.Biases.MLP },
}

// noBiases refuses those that a class of transformers leaves out whatever its configuration says.
var noBiases = feature{read: func(_ *described, f *fields) {
	for _, key := range []string{"attention_bias", "mlp_bias", "lm_head_bias"} {
		if !f.known[key] {
			f.never(key, "models of this architecture have none")
		}
	}
}}

// phiOnes are of Phi-4: other values are not of this architecture.
var phiOnes = feature{read: func(_ *described, f *fields) {
	for _, key := range []string{"full_attn_mod", "interpolate_factor"} {
		if f.sizeOr(key, 1) != 1 {
			f.refuse(key, "1")
		}
	}
}}

var normedHeads = always(func(c *nn.Config) { c.Norms.QueryKey = true })

var normedHeadsIfUsed = feature{
	func(d *described, f *fields) { d.Norms.QueryKey = f.truth("use_qk_norm") },
	func(c nn.Config, v members) { v["use_qk_norm"] = c.Norms.QueryKey },
}

// gemmaScales are what Gemma multiplies by, and its norms.
var gemmaScales = feature{
	func(d *described, f *fields) {
		d.Norms.PlusOne, d.Norms.After = true, true
		d.EmbeddingScale = float64(float32(sqrt(float64(d.Dim))))
		d.ScoreScale = 1 / sqrt(f.number("query_pre_attn_scalar", 0))
		if scale := scoreScale(d.Config); d.ScoreScale == scale {
			d.ScoreScale = 0
		}
		d.LogitCap = f.number("final_logit_softcapping", 0)
		f.never("use_bidirectional_attention", "package nn has causal attention alone")
	},
	func(c nn.Config, v members) {
		scale := cmp.Or(c.ScoreScale, scoreScale(c))
		v["query_pre_attn_scalar"] = 1 / (scale * scale)
		if c.ScoreScale == 0 {
			v["query_pre_attn_scalar"] = headDim(c)
		}
		if v["final_logit_softcapping"] = nil; c.LogitCap != 0 {
			v["final_logit_softcapping"] = c.LogitCap
		}
	},
}
