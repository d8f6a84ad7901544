package hf

import (
	"encoding/json"
	"io"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/safetensors"
)

// savedConfig is config.json as transformers writes it for a Llama.
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
	MLPBias           bool     `json:"mlp_bias"`
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

func configOf(c nn.Config, d safetensors.DType) savedConfig {
	return savedConfig{
		Architectures: []string{llamaArchitecture}, ModelType: llamaType, HiddenAct: "silu",
		HiddenSize: c.Dim, IntermediateSize: c.Hidden, HiddenLayers: c.Layers, VocabSize: c.Vocab,
		AttentionHeads: c.Heads, KeyValueHeads: c.KVHeads, HeadDim: c.Dim / c.Heads,
		Positions: c.Context, NormEps: c.NormEps, RopeTheta: c.RopeTheta,
		RopeScaling: ropeScalingOf(c.RopeScaling), TieWordEmbeddings: c.TieHead,
		TorchDType: map[safetensors.DType]string{"F32": "float32", "BF16": "bfloat16"}[d],
	}
}

// ropeScalingOf is what readRope reads; nil for none.
func ropeScalingOf(s nn.RopeScaling) any {
	switch {
	case s == (nn.RopeScaling{}):
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
