package plan

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// ReadModel reads the shape of a model from its config.json, or from the directory that has
// it. It knows what transformers calls llama, mistral, mixtral, qwen2, qwen3, qwen3_moe,
// deepseek_v2, deepseek_v3, kimi_k2 and gpt_oss. The error is [checkpoint.ErrConfig] if there
// is no such file, or it is no configuration, and [ErrModel] if a member is absent or wrong, or
// says that the model is built in a way that is not counted here.
func ReadModel(path string) (Model, error) {
	c, err := checkpoint.ReadConfig(path)
	if err != nil {
		return Model{}, err
	}
	m, err := FromConfig(c)
	if err != nil {
		return Model{}, sentinel.Errorf(ErrModel, "plan: %s: %s", path, strings.TrimPrefix(err.Error(), "plan: "))
	}
	m.Source = path
	return m, nil
}

// FromConfig is [ReadModel] of a configuration that has been read. The model has no name, but
// that of its kind. The error is [ErrModel] and names the member and its value.
func FromConfig(c checkpoint.Config) (Model, error) {
	members := c.Model
	var text map[string]json.RawMessage
	if json.Unmarshal(members["text_config"], &text) == nil && text != nil {
		members = text
	}
	f := &configFields{members: members}
	m := f.model()
	m.Published = f.published(c)
	if f.err != nil {
		return Model{}, f.err
	}
	return m.complete()
}

// configFields reads members of a configuration. Its error is the first that is wrong.
type configFields struct {
	members map[string]json.RawMessage
	err     error
}

func (f *configFields) fail(key, want string) {
	if f.err == nil {
		f.err = sentinel.Errorf(ErrModel, "plan: %s is %s: want %s", key, textout.JSON(f.members[key]), want)
	}
}

func (f *configFields) read(key, want string, to any) bool {
	raw := f.members[key]
	if raw == nil || string(raw) == "null" {
		return false
	}
	if json.Unmarshal(raw, to) != nil {
		f.fail(key, want)
	}
	return true
}

const aSize = "a positive integer"

// size reads a size that must be there; several names are tried in turn.
func (f *configFields) size(keys ...string) (n int) {
	for _, key := range keys {
		if f.read(key, aSize, &n) {
			if n <= 0 {
				f.fail(key, aSize)
			}
			return n
		}
	}
	f.fail(keys[0], aSize)
	return 0
}

// optional reads a size that may be absent or 0.
func (f *configFields) optional(key string, otherwise int) int {
	n := otherwise
	if f.read(key, "an integer from 0 on", &n) && n < 0 {
		f.fail(key, "an integer from 0 on")
	}
	return n
}

func (f *configFields) flag(key string, otherwise bool) bool {
	f.read(key, "true or false", &otherwise)
	return otherwise
}

// only refuses a member that is there with another value.
func (f *configFields) only(key string, value int) {
	if n := f.optional(key, value); n != value {
		f.fail(key, "what is counted here: "+strconv.Itoa(value))
	}
}

// model reads what all kinds have and then what its own has.
func (f *configFields) model() (m Model) {
	f.read("model_type", "a name", &m.Name)
	kinds := map[string]func(*Model){
		"llama": f.llama, "mistral": f.mistral, "mixtral": f.mixtral, "qwen2": f.qwen2, "qwen3": f.qwen3,
		"qwen3_moe": f.qwen3MoE, "deepseek_v2": f.deepseek, "deepseek_v3": f.deepseek, "kimi_k2": f.deepseek, "gpt_oss": f.gptOSS,
	}
	own := kinds[m.Name]
	if own == nil {
		names := make([]string, 0, len(kinds))
		for name := range kinds {
			names = append(names, name)
		}
		slices.Sort(names)
		f.fail("model_type", "one of "+strings.Join(names, ", "))
		return m
	}
	m.Layers, m.Hidden, m.Vocab = f.size("num_hidden_layers"), f.size("hidden_size"), f.size("vocab_size")
	m.Heads = f.size("num_attention_heads")
	m.KVHeads = f.optional("num_key_value_heads", m.Heads)
	m.HeadDim = f.optional("head_dim", 0)
	m.TiedHead = f.flag("tie_word_embeddings", false)
	own(&m)
	return m
}

func (f *configFields) llama(m *Model) {
	m.FFN = f.size("intermediate_size")
	m.QKVBias = f.flag("attention_bias", false)
	m.OutBias = m.QKVBias
	m.MLPBias = f.flag("mlp_bias", false)
}

func (f *configFields) mistral(m *Model) {
	m.FFN = f.size("intermediate_size")
	m.Window = f.optional("sliding_window", 0)
}

func (f *configFields) mixtral(m *Model) {
	m.Window = f.optional("sliding_window", 0)
	m.MoE = MoE{Experts: f.size("num_local_experts"), TopK: f.size("num_experts_per_tok"), FFN: f.size("intermediate_size")}
}

func (f *configFields) qwen2(m *Model) {
	m.FFN = f.size("intermediate_size")
	m.QKVBias = true
	f.noWindow()
}

func (f *configFields) qwen3(m *Model) {
	f.llama(m)
	m.QKNorm = true
	f.noWindow()
}

func (f *configFields) noWindow() {
	if f.flag("use_sliding_window", false) {
		f.fail("use_sliding_window", "false: windows of some layers are not counted here")
	}
}

func (f *configFields) qwen3MoE(m *Model) {
	m.QKNorm = true
	m.QKVBias = f.flag("attention_bias", false)
	m.OutBias = m.QKVBias
	m.MoE = MoE{Experts: f.size("num_experts", "num_local_experts"), TopK: f.size("num_experts_per_tok"), FFN: f.size("moe_intermediate_size")}
	f.only("decoder_sparse_step", 1)
	var dense []int
	if f.read("mlp_only_layers", "a list of layers", &dense); len(dense) > 0 {
		f.fail("mlp_only_layers", "none: they are not counted here")
	}
	f.noWindow()
}

func (f *configFields) deepseek(m *Model) {
	m.FFN = f.size("intermediate_size")
	m.KVHeads, m.HeadDim = 0, 0
	m.MLA = MLA{
		QRank: f.optional("q_lora_rank", 0), KVRank: f.size("kv_lora_rank"), NoPE: f.size("qk_nope_head_dim"),
		RoPE: f.size("qk_rope_head_dim"), Value: f.size("v_head_dim"),
	}
	m.MoE = MoE{
		Experts: f.size("n_routed_experts"), TopK: f.size("num_experts_per_tok"), FFN: f.size("moe_intermediate_size"),
		Dense: f.optional("first_k_dense_replace", 0),
	}
	m.MoE.Shared = f.optional("n_shared_experts", 0) * m.MoE.FFN
	f.only("moe_layer_freq", 1)
	method := "noaux_tc"
	if m.Name == "deepseek_v2" {
		method = "greedy"
	}
	f.read("topk_method", "a name", &method)
	m.MoE.RouterBias = method == "noaux_tc"
}

func (f *configFields) gptOSS(m *Model) {
	m.MoE = MoE{
		Experts: f.size("num_local_experts", "num_experts"), TopK: f.size("num_experts_per_tok", "experts_per_token"),
		FFN: f.size("intermediate_size"), RouterBias: true, Bias: true,
	}
	m.QKVBias = f.flag("attention_bias", true)
	m.OutBias, m.Sinks = m.QKVBias, true
	m.Window, m.FullEvery = f.optional("sliding_window", 0), 2
	const alternate = "sliding_attention and full_attention in turn"
	var kinds []string
	f.read("layer_types", alternate, &kinds)
	for i, kind := range kinds {
		if (kind == "full_attention") != (i%2 == 1) {
			f.fail("layer_types", alternate)
		}
	}
}
