package lint_test

import (
	"encoding/binary"
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
	"github.com/octavo-fp8/octavo/checkpoint/lint"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestGolden checks that sound models, and parts of them, give no alarm.
func TestGolden(t *testing.T) {
	root := testutil.Shared(t, "golden", "checkpoints")
	dirs, err := os.ReadDir(root)
	require.NoError(t, err)
	options := []lint.Options{{}, {Headers: true}, {Workers: 1}}
	if testing.Short() {
		options = options[:1]
	}
	n := 0
	for _, d := range dirs {
		if !d.IsDir() {
			continue
		}
		n++
		for _, o := range options {
			r, err := lint.Check(t.Context(), filepath.Join(root, d.Name()), o)
			require.NoError(t, err)
			requireSound(t, r, d.Name())
			require.NotEmpty(t, r.Layout)
			require.Positive(t, r.Bytes)
		}
	}
	require.GreaterOrEqual(t, n, 17)
}

// requireSound wants nothing found but ragged blocks, which are sound, and all judged.
func requireSound(t *testing.T, r *lint.Report, name string) {
	t.Helper()
	require.Empty(t, r.NotJudged, name)
	require.Zero(t, r.Count(lint.Error)+r.Count(lint.Warning), name)
	for _, f := range r.Findings {
		require.Equal(t, "block-ragged", f.Rule, name)
	}
}

// TestConverted checks that what conversions write gives no alarm, whatever the layout.
func TestConverted(t *testing.T) {
	for _, model := range []string{"llama-bf16", "moe-bf16", "tied-bf16"} {
		layouts := writable()
		if testing.Short() {
			layouts = fewLayouts
		}
		convertAndCheck(t, model, testutil.Shared(t, "golden", "checkpoints", model), layouts, "gpt-oss")
	}
}

// fewLayouts are of codes of eight bits and of four, in each kind of block.
var fewLayouts = []string{"deepseek-v3", "fp8", "ct-nvfp4", "gpt-oss"}

func writable() (names []string) {
	for _, l := range checkpoint.Layouts() {
		if l.Writable() {
			names = append(names, l.Name)
		}
	}
	return names
}

// convertAndCheck converts a model to layouts and wants nothing found, neither of it nor of
// what becomes of it. There are some layouts for which it has nothing to quantize.
func convertAndCheck(t *testing.T, name, dir string, layouts []string, without ...string) {
	t.Helper()
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	r, err := lint.Check(t.Context(), dir, lint.Options{})
	require.NoError(t, err)
	requireSound(t, r, name)
	amax := amaxOf(c)
	for _, to := range layouts {
		l, err := checkpoint.ParseLayout(to)
		require.NoError(t, err)
		for _, o := range []checkpoint.PlanOptions{{Amax: amax}, {}} {
			if o.Amax == nil && l.Calibrated != checkpoint.Optional {
				continue
			}
			t.Run(name+" to "+l.Name, func(t *testing.T) {
				t.Parallel()
				p, err := checkpoint.NewPlan(c, l, o)
				if slices.Contains(without, l.Name) {
					require.ErrorContains(t, err, "finds no weight to quantize")
					return
				}
				require.NoError(t, err)
				dir := t.TempDir()
				_, err = checkpoint.Convert(t.Context(), p, dir, checkpoint.Options{})
				require.NoError(t, err)
				r, err := lint.Check(t.Context(), dir, lint.Options{})
				require.NoError(t, err)
				requireSound(t, r, name)
			})
		}
	}
}

// amaxOf returns the largest magnitudes of all layers' inputs, keys and values, made up.
func amaxOf(c *checkpoint.Checkpoint) map[string]float32 {
	amax := map[string]float32{}
	for _, w := range c.Weights() {
		module := strings.TrimSuffix(w.Name, ".weight")
		amax[module] = 3.5
		if attention, ok := strings.CutSuffix(module, ".k_proj"); ok && !strings.Contains(module, "vision") {
			amax[attention+".k_scale"], amax[attention+".v_scale"] = 2, 3
		}
	}
	return amax
}

// architecture is the names and shapes of a model of some family, with one layer.
type architecture struct {
	name, config string
	tensors      map[string][]int
	without      []string // layouts for which there is nothing
}

// layer adds a prefix to names.
func layer(prefix string, tensors map[string][]int) map[string][]int {
	all := map[string][]int{}
	for name, shape := range tensors {
		all[prefix+name] = shape
	}
	return all
}

func join(list ...map[string][]int) map[string][]int {
	all := map[string][]int{}
	for _, m := range list {
		maps.Copy(all, m)
	}
	return all
}

var (
	endsOf = map[string][]int{"model.embed_tokens.weight": {96, 128}, "model.norm.weight": {128}, "lm_head.weight": {96, 128}}
	attn   = map[string][]int{
		"input_layernorm.weight": {128}, "post_attention_layernorm.weight": {128},
		"self_attn.q_proj.weight": {128, 128}, "self_attn.k_proj.weight": {64, 128}, "self_attn.v_proj.weight": {64, 128}, "self_attn.o_proj.weight": {128, 128},
	}
	swiglu = map[string][]int{"gate_proj.weight": {192, 128}, "up_proj.weight": {192, 128}, "down_proj.weight": {128, 192}}
)

// architectures are families whose names, shapes and configurations differ from Llama's.
var architectures = []architecture{
	{"qwen2, biases, tied", `{"architectures":["Qwen2ForCausalLM"],"tie_word_embeddings":true}`, join(
		map[string][]int{"model.embed_tokens.weight": {96, 128}, "model.norm.weight": {128}},
		layer("model.layers.0.", attn), layer("model.layers.0.mlp.", swiglu),
		map[string][]int{"model.layers.0.self_attn.q_proj.bias": {128}, "model.layers.0.self_attn.k_proj.bias": {64}, "model.layers.0.self_attn.v_proj.bias": {64}},
	), []string{"gpt-oss"}},
	{"qwen2-moe", `{"architectures":["Qwen2MoeForCausalLM"],"tie_word_embeddings":false}`, join(
		endsOf, layer("model.layers.0.", attn), layer("model.layers.0.mlp.experts.0.", swiglu), layer("model.layers.0.mlp.experts.1.", swiglu),
		layer("model.layers.0.mlp.shared_expert.", swiglu),
		map[string][]int{"model.layers.0.mlp.gate.weight": {64, 128}, "model.layers.0.mlp.shared_expert_gate.weight": {1, 128}, "model.layers.0.self_attn.q_norm.weight": {32}, "model.layers.0.self_attn.k_norm.weight": {32}},
	), []string{"gpt-oss"}},
	{"mixtral", `{"architectures":["MixtralForCausalLM"],"tie_word_embeddings":false}`, join(
		endsOf, layer("model.layers.0.", attn),
		map[string][]int{
			"model.layers.0.block_sparse_moe.gate.weight":         {8, 128},
			"model.layers.0.block_sparse_moe.experts.0.w1.weight": {192, 128}, "model.layers.0.block_sparse_moe.experts.0.w3.weight": {192, 128}, "model.layers.0.block_sparse_moe.experts.0.w2.weight": {128, 192},
		},
	), []string{"gpt-oss"}},
	{"deepseek-v3 with the module of its last layer", `{"architectures":["DeepseekV3ForCausalLM"],"model_type":"deepseek_v3"}`, join(
		endsOf, layer("model.layers.61.mlp.experts.0.", swiglu), layer("model.layers.61.mlp.shared_experts.", swiglu),
		layer("model.layers.61.", map[string][]int{
			"input_layernorm.weight": {128}, "self_attn.q_a_proj.weight": {64, 128}, "self_attn.q_a_layernorm.weight": {64}, "self_attn.q_b_proj.weight": {192, 64},
			"self_attn.kv_a_proj_with_mqa.weight": {96, 128}, "self_attn.kv_a_layernorm.weight": {64}, "self_attn.kv_b_proj.weight": {192, 64}, "self_attn.o_proj.weight": {128, 128},
			"mlp.gate.weight": {8, 128}, "mlp.gate.e_score_correction_bias": {8},
			"embed_tokens.weight": {96, 128}, "enorm.weight": {128}, "hnorm.weight": {128}, "eh_proj.weight": {128, 256}, "shared_head.norm.weight": {128}, "shared_head.head.weight": {96, 128},
		}),
	), []string{"gpt-oss"}},
	{"gpt-oss", `{"architectures":["GptOssForCausalLM"],"model_type":"gpt_oss","tie_word_embeddings":false}`, join(
		endsOf, layer("model.layers.0.", attn), layer("model.layers.0.", map[string][]int{
			"self_attn.q_proj.bias": {128}, "self_attn.sinks": {8}, "mlp.router.weight": {4, 128}, "mlp.router.bias": {4},
			"mlp.experts.gate_up_proj": {4, 128, 384}, "mlp.experts.gate_up_proj_bias": {4, 384}, "mlp.experts.down_proj": {4, 192, 128}, "mlp.experts.down_proj_bias": {4, 128},
		}),
	), nil},
	{"qwen2-vl", `{"architectures":["Qwen2VLForConditionalGeneration"],"tie_word_embeddings":true,"vision_config":{}}`, join(
		map[string][]int{"model.embed_tokens.weight": {96, 128}, "model.norm.weight": {128}}, layer("model.layers.0.", attn), layer("model.layers.0.mlp.", swiglu),
		map[string][]int{"visual.patch_embed.proj.weight": {64, 3, 2, 14, 14}, "visual.blocks.0.attn.qkv.weight": {192, 64}, "visual.blocks.0.attn.qkv.bias": {192}, "visual.blocks.0.norm1.weight": {64}, "visual.merger.mlp.0.weight": {64, 64}, "visual.merger.ln_q.weight": {64}},
	), []string{"gpt-oss"}},
	{"llava, a tower beside", `{"architectures":["LlavaForConditionalGeneration"],"vision_config":{},"text_config":{"tie_word_embeddings":false}}`, join(
		layer("language_model.", endsOf), layer("language_model.model.layers.0.", attn), layer("language_model.model.layers.0.mlp.", swiglu),
		map[string][]int{"vision_tower.vision_model.embeddings.patch_embedding.weight": {64, 3, 14, 14}, "vision_tower.vision_model.embeddings.position_embedding.weight": {10, 64}, "vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight": {128, 64}, "vision_tower.vision_model.encoder.layers.0.self_attn.k_proj.weight": {64, 64}, "vision_tower.vision_model.encoder.layers.0.self_attn.v_proj.weight": {64, 64}, "multi_modal_projector.linear_1.weight": {128, 64}},
	), []string{"gpt-oss"}},
	{"phi-3, fused by name", `{"architectures":["Phi3ForCausalLM"],"tie_word_embeddings":false}`, join(
		endsOf, layer("model.layers.0.", map[string][]int{"self_attn.qkv_proj.weight": {256, 128}, "self_attn.o_proj.weight": {128, 128}, "mlp.gate_up_proj.weight": {384, 128}, "mlp.down_proj.weight": {128, 192}}),
	), []string{"gpt-oss"}},
	{"gpt-neox", `{"architectures":["GPTNeoXForCausalLM"],"tie_word_embeddings":false}`, map[string][]int{
		"gpt_neox.embed_in.weight": {96, 128}, "embed_out.weight": {96, 128}, "gpt_neox.final_layer_norm.weight": {128},
		"gpt_neox.layers.0.attention.query_key_value.weight": {384, 128}, "gpt_neox.layers.0.attention.dense.weight": {128, 128}, "gpt_neox.layers.0.mlp.dense_h_to_4h.weight": {256, 128}, "gpt_neox.layers.0.mlp.dense_4h_to_h.weight": {128, 256},
		"gpt_neox.layers.0.attention.rotary_emb.inv_freq": {8},
	}, []string{"gpt-oss"}},
	{"mamba", `{"architectures":["JambaForCausalLM"],"tie_word_embeddings":false}`, join(endsOf, layer("model.layers.0.mamba.", map[string][]int{
		"in_proj.weight": {256, 128}, "conv1d.weight": {128, 1, 4}, "conv1d.bias": {128}, "x_proj.weight": {64, 128}, "dt_proj.weight": {128, 32}, "A_log": {128, 16}, "D": {128}, "out_proj.weight": {128, 128},
	})), []string{"gpt-oss"}},
}

// TestArchitectures checks that models of families unlike the golden ones give no alarm, with
// files beside them that are none of the model's.
func TestArchitectures(t *testing.T) {
	for _, a := range architectures {
		dir := t.TempDir()
		var tensors []safetensors.Tensor
		r := rand.New(rand.NewPCG(1, 2))
		for _, name := range slices.Sorted(maps.Keys(a.tensors)) {
			info := safetensors.Info{Name: name, DType: safetensors.BF16, Shape: a.tensors[name]}
			if strings.Contains(name, "norm") || strings.HasSuffix(name, "_bias") {
				info.DType = safetensors.F32
			}
			var data []byte
			for range info.Len() {
				bits := math.Float32bits(float32(r.NormFloat64() / 30))
				if info.DType == safetensors.F32 {
					data = binary.LittleEndian.AppendUint32(data, bits)
				} else {
					data = binary.LittleEndian.AppendUint16(data, uint16(bits>>16))
				}
			}
			tensors = append(tensors, safetensors.Tensor{Info: info, Data: data})
		}
		require.NoError(t, safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), tensors, checkpoint.Metadata()))
		for name, text := range map[string]string{checkpoint.ConfigName: a.config, "tokenizer.json": "{}", "pytorch_model.bin": "", "README.md": "a model"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		convertAndCheck(t, a.name, dir, fewLayouts, a.without...)
	}
}
