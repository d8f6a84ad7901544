package plan

import (
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Models returns the shapes of known models, by name. Source says where the figures come
// from: they are those of the config.json that is published with the weights.
func Models() []Model { return slices.Clone(models) }

// Named returns the known model of a name, in any case. It is an error, [ErrModel], that
// lists the names if there is none.
func Named(name string) (Model, error) {
	var names []string
	for _, m := range models {
		if strings.EqualFold(m.Name, name) {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Model{}, sentinel.Errorf(ErrModel, "plan: no model is called %q: want one of %s", name, strings.Join(names, ", "))
}

// latent is the MLA of DeepSeek-V2 and what came after it.
var latent = MLA{QRank: 1536, KVRank: 512, NoPE: 128, RoPE: 64, Value: 128}

const onHub = "config.json at huggingface.co/"

var models = []Model{
	{
		Name: "llama-3-8b", Source: onHub + "meta-llama/Meta-Llama-3-8B", Published: "bf16",
		Layers: 32, Hidden: 4096, Vocab: 128256, Heads: 32, KVHeads: 8, FFN: 14336,
	},
	{
		Name: "llama-3-70b", Source: onHub + "meta-llama/Meta-Llama-3-70B", Published: "bf16",
		Layers: 80, Hidden: 8192, Vocab: 128256, Heads: 64, KVHeads: 8, FFN: 28672,
	},
	{
		Name: "llama-3.1-405b", Source: onHub + "meta-llama/Llama-3.1-405B", Published: "bf16",
		Layers: 126, Hidden: 16384, Vocab: 128256, Heads: 128, KVHeads: 8, FFN: 53248,
	},
	{
		Name: "deepseek-v2", Source: onHub + "deepseek-ai/DeepSeek-V2", Published: "bf16",
		Layers: 60, Hidden: 5120, Vocab: 102400, Heads: 128, MLA: latent, FFN: 12288,
		MoE: MoE{Experts: 160, TopK: 6, FFN: 1536, Shared: 2 * 1536, Dense: 1},
	},
	{
		Name: "deepseek-v3", Source: onHub + "deepseek-ai/DeepSeek-V3", Published: "deepseek-v3",
		Layers: 61, Hidden: 7168, Vocab: 129280, Heads: 128, MLA: latent, FFN: 18432,
		MoE: MoE{Experts: 256, TopK: 8, FFN: 2048, Shared: 2048, Dense: 3, RouterBias: true},
	},
	{
		Name: "kimi-k2", Source: onHub + "moonshotai/Kimi-K2-Base", Published: "deepseek-v3",
		Layers: 61, Hidden: 7168, Vocab: 163840, Heads: 64, MLA: latent, FFN: 18432,
		MoE: MoE{Experts: 384, TopK: 8, FFN: 2048, Shared: 2048, Dense: 1, RouterBias: true},
	},
	{
		Name: "gpt-oss-120b", Source: onHub + "openai/gpt-oss-120b", Published: "mxfp4-experts",
		Layers: 36, Hidden: 2880, Vocab: 201088, Heads: 64, KVHeads: 8, HeadDim: 64,
		QKVBias: true, OutBias: true, Sinks: true, Window: 128, FullEvery: 2,
		MoE: MoE{Experts: 128, TopK: 4, FFN: 2880, RouterBias: true, Bias: true},
	},
	{
		Name: "mixtral-8x7b", Source: onHub + "mistralai/Mixtral-8x7B-v0.1", Published: "bf16",
		Layers: 32, Hidden: 4096, Vocab: 32000, Heads: 32, KVHeads: 8,
		MoE: MoE{Experts: 8, TopK: 2, FFN: 14336},
	},
	{
		Name: "qwen3-32b", Source: onHub + "Qwen/Qwen3-32B", Published: "bf16",
		Layers: 64, Hidden: 5120, Vocab: 151936, Heads: 64, KVHeads: 8, HeadDim: 128, FFN: 25600,
		QKNorm: true,
	},
}
