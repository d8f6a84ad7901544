package hf

import (
	"cmp"
	"encoding/json"
	"io"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/safetensors"
)

// savedConfig is what config.json has of every model, as transformers writes it.
type savedConfig struct {
	Architectures     []string `json:"architectures"`
	AttentionBias     bool     `json:"attention_bias"`
	BOS               *int     `json:"bos_token_id"` // null: tokens have none
	EOS               *int     `json:"eos_token_id"`
	HeadDim           int      `json:"head_dim"`
	HiddenAct         string   `json:"hidden_act"`
	HiddenSize        int      `json:"hidden_size"`
	IntermediateSize  int      `json:"intermediate_size"`
	Positions         int      `json:"max_position_embeddings"`
	ModelType         string   `json:"model_type"`
	AttentionHeads    int      `json:"num_attention_heads"`
	HiddenLayers      int      `json:"num_hidden_layers"`
	KeyValueHeads     int      `json:"num_key_value_heads"`
	NormEps           float64  `json:"rms_norm_eps"`
	RopeScaling       any      `json:"rope_scaling"`
	RopeTheta         float64  `json:"rope_theta"`
	TieWordEmbeddings bool     `json:"tie_word_embeddings"`
	TorchDType        string   `json:"torch_dtype"`
	VocabSize         int      `json:"vocab_size"`
}

// savedLlama is config.json of a Llama.
type savedLlama struct {
	savedConfig
	MLPBias bool `json:"mlp_bias"`
}

// savedDeepSeek is config.json of a DeepSeek-V3.
type savedDeepSeek struct {
	savedConfig
	KVRank         int  `json:"kv_lora_rank"`
	QueryRank      *int `json:"q_lora_rank"` // null: queries have no latent
	NoPE           int  `json:"qk_nope_head_dim"`
	RoPE           int  `json:"qk_rope_head_dim"`
	Value          int  `json:"v_head_dim"`
	RopeInterleave bool `json:"rope_interleave"`
	Dense          int  `json:"first_k_dense_replace"`
	Predicted      int  `json:"num_nextn_predict_layers"`
	*savedExperts       // nil: all layers are dense
}

type savedExperts struct {
	Hidden     int     `json:"moe_intermediate_size"`
	LayerFreq  int     `json:"moe_layer_freq"`
	Groups     int     `json:"n_group"`
	Experts    int     `json:"n_routed_experts"`
	Shared     int     `json:"n_shared_experts"`
	Normalized bool    `json:"norm_topk_prob"`
	TopK       int     `json:"num_experts_per_tok"`
	Scale      float64 `json:"routed_scaling_factor"`
	Score      string  `json:"scoring_func"`
	TopGroups  int     `json:"topk_group"`
	Method     string  `json:"topk_method"`
}

// configOf returns config.json of a model that can be saved.
func configOf(c nn.Config, d safetensors.DType) any {
	s := savedConfig{
		Architectures: []string{llamaArchitecture}, ModelType: llamaType, HiddenAct: "silu",
		HiddenSize: c.Dim, IntermediateSize: c.Hidden, HiddenLayers: c.Layers, VocabSize: c.Vocab,
		AttentionHeads: c.Heads, KeyValueHeads: c.KVHeads, HeadDim: c.Dim / c.Heads,
		Positions: c.Context, NormEps: c.NormEps, RopeTheta: c.RopeTheta,
		RopeScaling: ropeScalingOf(c.RopeScaling), TieWordEmbeddings: c.TieHead,
		TorchDType: map[safetensors.DType]string{"F32": "float32", "BF16": "bfloat16"}[d],
	}
	m := c.MLA
	if m == nil {
		return savedLlama{savedConfig: s}
	}
	s.Architectures, s.ModelType, s.HeadDim = []string{deepseekArchitecture}, deepseekType, m.RoPE
	all := savedDeepSeek{
		savedConfig: s, KVRank: m.KVRank, NoPE: m.NoPE, RoPE: m.RoPE, Value: m.Value,
		RopeInterleave: true, Dense: c.Layers,
	}
	if m.QueryRank > 0 {
		all.QueryRank = &m.QueryRank
	}
	if c.Experts != nil {
		all.Dense, all.savedExperts = c.Dense, expertsOf(*c.Experts)
	}
	return all
}

func expertsOf(x nn.ExpertsConfig) *savedExperts {
	r := x.Router
	return &savedExperts{
		Hidden: x.Hidden, LayerFreq: 1, Experts: r.Experts, Shared: x.Shared, TopK: r.TopK,
		Groups: cmp.Or(r.Groups, 1), TopGroups: cmp.Or(r.TopGroups, 1),
		Normalized: !r.Unnormalized, Scale: cmp.Or(r.Scale, 1), Score: r.Score.String(),
		Method: "noaux_tc",
	}
}

// ropeScalingOf is what readRope reads; nil for none.
func ropeScalingOf(s nn.RopeScaling) any {
	switch {
	case s.IsZero():
		return nil
	case s.Original == 0:
		return map[string]any{"rope_type": "linear", "factor": s.Factor}
	}
	return map[string]any{
		"rope_type": "llama3", "factor": s.Factor, "low_freq_factor": s.Low,
		"high_freq_factor": s.High, "original_max_position_embeddings": s.Original,
	}
}

// writeJSON writes indented JSON, as transformers does.
func writeJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}
