package hf_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
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
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

func open(t *testing.T, path string) *checkpoint.Checkpoint {
	t.Helper()
	c, err := checkpoint.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func load(t *testing.T, path string) *nn.Llama {
	t.Helper()
	m, err := hf.Load(t.Context(), open(t, path), hf.Options{Context: 256})
	require.NoError(t, err)
	return m
}

// recorded returns the tensors of a float32 forward pass, by another
// implementation, and its tokens.
func recorded(t *testing.T) (f *safetensors.File, tokens []int32) {
	t.Helper()
	f, err := safetensors.Open(testutil.Shared(t, "data", "stories260K_activations.safetensors"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	tokens, err = safetensors.Elements[int32](f, "tokens")
	require.NoError(t, err)
	return f, tokens
}

// TestStories compares every activation of a model with those that another implementation
// recorded in float32. Its angles are float32 numbers up to 160, the number of positions:
// off by 160·2^-24 at most, which is what results may be off by, in units of the largest.
// Other roundings add less: sums of 512 products at most, of random signs. Another order of
// rows is off by more than 1e-1, and an epsilon of 1e-6 by more than 1e-4.
func TestStories(t *testing.T) {
	f, tokens := recorded(t)
	m := load(t, testutil.Shared(t, "data", "stories260K.safetensors"))
	seen := 0
	names := strings.NewReplacer(
		"model.layers.", "layers.",
		".self_attn.q_proj.input", ".attn_in", ".self_attn.o_proj.input", ".attn_out",
		".mlp.up_proj.input", ".mlp_in", ".mlp.swiglu.gate", ".gate", ".mlp.swiglu.up", ".up",
		".mlp.swiglu.product", ".swiglu", "lm_head.output", "logits")
	m.Shared().Tap = func(name string, values []float32, rows, cols int) {
		name = names.Replace(name)
		want, err := f.Float32s(name)
		if err != nil {
			return
		}
		seen++
		require.Len(t, values, len(want))
		require.Less(t, distance(values, want), 160*0x1p-24, name)
	}
	_, err := m.Logits(t.Context(), tokens, 1, len(tokens))
	require.NoError(t, err)
	require.Equal(t, 5*6+1, seen)
}

// distance returns the largest difference, in units of the largest value.
func distance(got, want []float32) float64 {
	most, scale := 0.0, 0.0
	for i, w := range want {
		most = math.Max(most, math.Abs(float64(got[i])-float64(w)))
		scale = math.Max(scale, math.Abs(float64(w)))
	}
	return most / scale
}

// write writes a model of one file: tensors by name, and config.json unless it is "".
func write(
	t *testing.T, tensors []safetensors.Tensor, metadata map[string]string, config string,
) (dir string) {
	t.Helper()
	dir = t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	require.NoError(t, safetensors.WriteFile(path, tensors, metadata))
	if config != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o644))
	}
	return dir
}

const storiesConfig = `{"architectures": ["LlamaForCausalLM"], "vocab_size": 512, "hidden_size": 64,
	"intermediate_size": 172, "num_hidden_layers": 5, "num_attention_heads": 8,
	"num_key_value_heads": 4, "rms_norm_eps": 1e-5, "tie_word_embeddings": true%s}`

var storiesSizes = map[string]string{
	"vocab_size": "512", "hidden_size": "64", "intermediate_size": "172",
	"num_hidden_layers": "5", "num_attention_heads": "8", "num_key_value_heads": "4",
}

// stories returns the tensors of stories260K, with rows of q_proj and k_proj in the order of
// rotated halves: of a head of 8, row i and row i+4 are pair i.
func stories(t *testing.T) (all []safetensors.Tensor) {
	t.Helper()
	f, err := safetensors.Open(testutil.Shared(t, "data", "stories260K.safetensors"))
	require.NoError(t, err)
	defer f.Close()
	for _, info := range f.Tensors() {
		data, err := f.Bytes(info.Name)
		require.NoError(t, err)
		if strings.Contains(info.Name, "q_proj") || strings.Contains(info.Name, "k_proj") {
			const row, head = 64 * 4, 8
			old := slices.Clone(data)
			for h := 0; h < info.Shape[0]; h += head {
				for to, from := range []int{0, 2, 4, 6, 1, 3, 5, 7} {
					copy(data[(h+to)*row:(h+to+1)*row], old[(h+from)*row:])
				}
			}
		}
		all = append(all, safetensors.Tensor{Info: info, Data: data})
	}
	return all
}

// logits runs some of the recorded tokens through a model.
func logits(t *testing.T, m *nn.Llama) []uint32 {
	t.Helper()
	_, tokens := recorded(t)
	tokens = tokens[:24]
	got, err := m.Logits(t.Context(), tokens, 1, len(tokens))
	require.NoError(t, err)
	return bits(got)
}

func bits(values []float32) []uint32 {
	all := make([]uint32, len(values))
	for i, x := range values {
		all[i] = math.Float32bits(x)
	}
	return all
}

// TestOrders loads the same model in both orders of rows, and from every place that says how
// it is built.
func TestOrders(t *testing.T) {
	want := logits(t, load(t, testutil.Shared(t, "data", "stories260K.safetensors")))
	halves, config := stories(t), fmt.Sprintf(storiesConfig, "")
	require.Equal(t, want, logits(t, load(t, write(t, halves, nil, config))))
	metadata := map[string]string{"rope": "interleaved pairs, theta 1"}
	require.Equal(t, want, logits(t, load(t, write(t, halves, metadata, config))))
	metadata = maps.Clone(storiesSizes)
	metadata["rope"] = "rotated halves, theta 10000"
	require.Equal(t, want, logits(t, load(t, write(t, halves, metadata, ""))))
}

// TestGolden loads every complete golden Llama: all layouts of one model have the values that
// the golden dequantized one has, or come near it.
func TestGolden(t *testing.T) {
	for _, name := range []string{
		"llama-bf16", "llama-ct-fp8-dynamic", "llama-ct-mxfp4", "llama-ct-nvfp4a16",
		"llama-deepseek-fp8", "llama-dequant-bf16", "llama-fp8-static",
		"tied-bf16", "tied-ct-fp8-dynamic",
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, testutil.Shared(t, "golden", "checkpoints", name))
			m, err := hf.Load(t.Context(), c, hf.Options{})
			require.NoError(t, err)
			cfg := m.Config()
			heads := map[string]int{".q_proj.weight": cfg.Heads, ".k_proj.weight": cfg.KVHeads}
			for _, p := range m.Params() {
				want := make([]float32, len(p.Value))
				var r checkpoint.Reader
				require.NoError(t, checkpoint.ReadValues(&r, c.Weight(p.Name), 0, 0, want))
				for end, n := range heads {
					if strings.HasSuffix(p.Name, end) {
						want = pairs(want, n, p.Cols)
					}
				}
				require.Equal(t, bits(want), bits(p.Value), p.Name)
			}
		})
	}
}

// pairs returns rows of rotated halves as interleaved pairs, as the inverse of transformers'
// w.view(heads, dim/2, 2, cols).transpose(1, 2): what is w[h][j][i] there is w[h][i][j] here.
func pairs(halves []float32, heads, cols int) []float32 {
	dim := len(halves) / heads / cols
	var all []float32
	for h := range heads {
		for i := range dim / 2 {
			for j := range 2 {
				row := h*dim + j*dim/2 + i
				all = append(all, halves[row*cols:(row+1)*cols]...)
			}
		}
	}
	return all
}

func TestRefusedConfigs(t *testing.T) {
	tensors := stories(t)
	for _, c := range []struct{ more, want string }{
		{`, "architectures": ["GemmaForCausalLM"]`,
			`architectures is ["GemmaForCausalLM"]: want one of LlamaForCausalLM, MistralForCausalLM, `},
		{`, "model_type": "mistral"`,
			`model_type is "mistral": want "llama", as architectures say`},
		{`, "architectures": 7`,
			`architectures is 7: want`},
		{`, "architectures": null`,
			`architectures is absent: want`},
		{`, "architectures": null, "model_type": "gemma"`,
			`model_type is "gemma": want one of LlamaForCausalLM`},
		{`, "hidden_act": "relu"`,
			`hidden_act is "relu": want "silu", "swish", "gelu", "gelu_pytorch_tanh" or "gelu_new": package nn has no other activation`},
		{`, "attention_bias": true`,
			`self_attn.q_proj.bias is missing`},
		{`, "mlp_bias": true`,
			`mlp.gate_proj.bias is missing`},
		{`, "lm_head_bias": true`,
			`lm_head_bias is true: want false: models of this architecture have none`},
		{`, "architectures": ["MistralForCausalLM"], "attention_bias": true`,
			`attention_bias is true: want false: models of this architecture have none`},
		{`, "head_dim": 16`,
			`q_proj.weight is [64 64]: want [128 64]`},
		{`, "num_heads": 4`,
			`num_heads is 4: want none: what it changes is not known`},
		{`, "embedding_multiplier": 12.0`,
			`embedding_multiplier is 12.0: want none`},
		{`, "layer_types": ["full_attention"]`,
			`layer_types is ["full_attention"]: want none`},
		{`, "rope_scaling": {"rope_type": "longrope", "factor": 8, "short_factor": [1, 2, 3, 4]}`,
			`rope_scaling.long_factor is absent: want 4 positive numbers`},
		{`, "rope_scaling": {"rope_type": "longrope", "factor": 8, "short_factor": [1, 2, 0, 4]}`,
			`rope_scaling.short_factor is [1,2,0,4]: want 4 positive numbers`},
		{`, "rope_scaling": {"type": "proportional", "factor": 2}`,
			`rope_scaling.type is "proportional": want "default", "linear", "dynamic", "llama3", "yarn" or "longrope": package`},
		{`, "rope_scaling": {"type": "dynamic", "factor": 2, "alpha": 1000}`,
			`rope_scaling.alpha is 1000: want none`},
		{`, "rope_parameters": {"full_attention": {"rope_type": "default"}}`,
			`rope_parameters.full_attention is {"rope_type":"default"}: want none`},
		{`, "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1}`,
			`rope_scaling.high_freq_factor is absent: want a positive number`},
		{`, "rope_scaling": {"rope_type": "linear"}`,
			`rope_scaling.factor is absent: want a positive number`},
		{`, "rope_scaling": {"rope_type": "linear", "factor": 0.5}`,
			`Config.RopeScaling.Factor is 0.5: it must be from 1 to`},
		{`, "rope_parameters": {"rope_type": "yarn", "rope_theta": 5e5, "beta_fast": -1}`,
			`rope_parameters.beta_fast is -1: want a number from 0 on`},
		{`, "rope_parameters": {"rope_theta": 5e5, "partial_rotary_factor": 0.5}`,
			`rope_parameters.partial_rotary_factor is 0.5: want 1`},
		{`, "partial_rotary_factor": 0.25`,
			`partial_rotary_factor is 0.25: want 1`},
		{`, "num_hidden_layers": 0`,
			`num_hidden_layers is 0: want a positive integer`},
		{`, "num_hidden_layers": "five"`,
			`num_hidden_layers is "five": want a positive integer`},
		{`, "vocab_size": null`,
			`vocab_size is absent: want a positive integer`},
		{`, "rms_norm_eps": -1`,
			`rms_norm_eps is -1: want a positive number`},
		{`, "num_attention_heads": 7`,
			`hidden_size is 64: want a multiple of num_attention_heads, which is 7`},
		{`, "num_key_value_heads": 3`,
			`Config.KVHeads is 3: it must divide Heads = 8`},
		{`, "num_hidden_layers": 65536`,
			`input_layernorm.weight is missing, which a model of 65536 layers as in config.json`},
		{`, "num_hidden_layers": 4`,
			`model.layers.4.input_layernorm.weight, [64], is no part of a model as in config.json`},
		{`, "intermediate_size": 176`,
			`model.layers.0.mlp.gate_proj.weight is [172 64]: want [176 64] as in config.json`},
		{`, "tie_word_embeddings": false`,
			`lm_head.weight is missing`},
		{`, "max_position_embeddings": 128`,
			`a context of 256: it must be at most 128, as max_position_embeddings says`},
		{`, "architectures": ["Qwen2ForCausalLM"], "use_sliding_window": true, "layer_types": ["full_attention"]`,
			`layer_types is ["full_attention"]: want a "sliding_attention" or "full_attention" for each layer`},
		{`, "architectures": ["Qwen2ForCausalLM"], "sliding_window": null, "layer_types": ["sliding_attention",
			"full_attention", "full_attention", "full_attention", "full_attention"]`,
			`sliding_window is absent: want a positive integer: there are layers with such a window`},
		{`, "architectures": ["Gemma3ForCausalLM"], "use_bidirectional_attention": true`,
			`use_bidirectional_attention is true: want false: package nn has causal attention alone`},
		{`, "architectures": ["Phi3ForCausalLM"], "rope_scaling": {"type": "linear", "factor": 2}`,
			`rope_scaling.type is "linear": want "default", "longrope", "su" or "yarn"`},
		{`, "architectures": ["Phi3ForCausalLM"], "full_attn_mod": 2`,
			`full_attn_mod is 2: want 1`},
	} {
		dir := write(t, tensors, nil, fmt.Sprintf(storiesConfig, c.more))
		_, err := hf.Load(t.Context(), open(t, dir), hf.Options{Context: 256})
		require.ErrorContains(t, err, c.want, c.more)
		require.ErrorContains(t, err, "hf: "+dir, c.more)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestAcceptedConfigs(t *testing.T) {
	tensors := stories(t)
	for more, want := range map[string]nn.Config{
		``: {RopeTheta: 1e4, Context: 2048},
		`, "rope_theta": 5e5, "rope_scaling": null, "head_dim": null`: {
			RopeTheta: 5e5, Context: 2048,
		},
		`, "rope_parameters": {"rope_type": "default", "rope_theta": 2e5}`: {
			RopeTheta: 2e5, Context: 2048,
		},
		`, "rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 32.0,
			"low_freq_factor": 1.0, "high_freq_factor": 4.0,
			"original_max_position_embeddings": 8192}`: {
			RopeTheta: 5e5, Context: 2048,
			RopeScaling: nn.RopeScaling{Factor: 32, Original: 8192, Low: 1, High: 4},
		},
		`, "rope_scaling": {"type": "linear", "factor": 2.0}`: {
			RopeTheta: 1e4, Context: 2048, RopeScaling: nn.RopeScaling{Factor: 2},
		},
		`, "max_position_embeddings": 131072, "hidden_act": "silu", "head_dim": 8`: {
			RopeTheta: 1e4, Context: 4096,
		},
		`, "architectures": ["MistralForCausalLM"], "sliding_window": 1024`: {
			RopeTheta: 1e4, Context: 4096, Windows: []int{1024, 1024, 1024, 1024, 1024},
		},
		`, "architectures": ["MistralForCausalLM"], "unsloth_version": "2", "eos_token_id": [1], "new_flag": false`: {
			RopeTheta: 1e4, Context: 4096, Windows: []int{4096, 4096, 4096, 4096, 4096},
		},
		`, "architectures": null, "model_type": "mistral", "max_position_embeddings": 9, "sliding_window": null`: {
			RopeTheta: 1e4, Context: 9,
		},
		`, "rope_scaling": {"type": "dynamic", "factor": 2}, "_private": 3, "new": null`: {
			RopeTheta: 1e4, Context: 2048,
		},
	} {
		dir := write(t, tensors, nil, fmt.Sprintf(storiesConfig, more))
		m, err := hf.Load(t.Context(), open(t, dir), hf.Options{})
		require.NoError(t, err, more)
		want.Vocab, want.Dim, want.Hidden, want.Layers = 512, 64, 172, 5
		want.Heads, want.KVHeads, want.NormEps, want.TieHead = 8, 4, 1e-5, true
		require.Equal(t, want, m.Config(), more)
	}
}

func TestRefusedMetadata(t *testing.T) {
	tensors := stories(t)
	refused := func(want, key, value string) {
		t.Helper()
		metadata := maps.Clone(storiesSizes)
		if metadata[key] = value; value == "" {
			delete(metadata, key)
		}
		_, err := hf.Load(t.Context(), open(t, write(t, tensors, metadata, "")), hf.Options{})
		require.ErrorIs(t, err, hf.ErrConfig)
		require.ErrorContains(t, err, want)
	}
	refused(`metadata rope is absent: want "interleaved pairs, theta 10000" or`, "", "")
	refused(`metadata rope is "pairs": want`, "rope", "pairs")
	refused(`metadata rope is "rotated halves, theta x": want`, "rope", "rotated halves, theta x")
	refused(`metadata num_hidden_layers is absent`, "num_hidden_layers", "")
	refused(`metadata num_hidden_layers is "many": want a positive`, "num_hidden_layers", "many")
	refused(`there is no config.json, and no metadata says how the model is`, "hidden_size", "")
}

// head returns the tensors with an embedding of 8192 rows, which is read in several strips, and a
// head: the embedding, changed at one place unless it is -1.
func head(t *testing.T, at int) []safetensors.Tensor {
	t.Helper()
	all := stories(t)
	for i, x := range all {
		if x.Name == "model.embed_tokens.weight" {
			x.Shape, x.Data = []int{8192, 64}, bytes.Repeat(x.Data, 16)
			all[i] = x
			x.Name, x.Data = "lm_head.weight", slices.Clone(x.Data)
			if at >= 0 {
				binary.LittleEndian.PutUint32(x.Data[4*at:], math.Float32bits(7))
			}
			return append(all, x)
		}
	}
	panic("no embedding")
}

func TestTiedHeadThatIsThere(t *testing.T) {
	config := strings.Replace(fmt.Sprintf(storiesConfig, ""), "512", "8192", 1)
	load(t, write(t, head(t, -1), nil, config))
	for row, place := range map[int]string{0: "[0, 3]", 8191: "[8191, 3]"} {
		_, err := hf.Load(t.Context(), open(t, write(t, head(t, row*64+3), nil, config)), hf.Options{})
		require.ErrorIs(t, err, hf.ErrTensor)
		require.ErrorContains(t, err, "lm_head.weight"+place+" is 7, and model.embed_tokens.weight, ")
	}
}

// TestNaNIsData loads a NaN and an infinity as they are.
func TestNaNIsData(t *testing.T) {
	all := stories(t)
	for _, x := range all {
		if x.Name == "model.norm.weight" {
			binary.LittleEndian.PutUint32(x.Data, 0x7fc12345)
			binary.LittleEndian.PutUint32(x.Data[4:], 0xff800000)
		}
	}
	m := load(t, write(t, all, nil, fmt.Sprintf(storiesConfig, "")))
	require.Equal(t, []uint32{0x7fc12345, 0xff800000}, bits(m.Param("model.norm.weight").Value[:2]))
}

func TestLoadStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := int64(0)
	c := open(t, testutil.Shared(t, "data", "stories260K.safetensors"))
	m, err := hf.Load(ctx, c, hf.Options{Workers: 1, Progress: progress.Func(
		func(op string, n, total int64) {
			cancel()
			done = n
			require.Equal(t, "load", op)
		},
	)})
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, m, "of which a part was read")
	require.Less(t, done, int64(100_000))
}

// TestOpen: parameters that are read one by one are those that are loaded together.
func TestOpen(t *testing.T) {
	path := testutil.Shared(t, "data", "stories260K.safetensors")
	want := load(t, path)
	var done, total int64
	u, err := hf.Open(t.Context(), open(t, path), hf.Options{Context: 256, Progress: progress.Func(
		func(_ string, n, of int64) { done, total = n, of },
	)})
	require.NoError(t, err)
	require.Equal(t, want.Config(), u.Model.Config())
	for i, p := range u.Model.Params() {
		got := make([]float32, len(p.Value))
		require.NoError(t, u.Read(p, got))
		require.Equal(t, bits(want.Params()[i].Value), bits(got), p.Name)
		require.ErrorIs(t, u.Read(p, got[1:]), hf.ErrTensor)
	}
	require.Positive(t, total)
	require.Equal(t, total, done)
	require.ErrorIs(t, u.Read(want.Params()[0], want.Params()[0].Value), hf.ErrTensor)
}

func TestConfigure(t *testing.T) {
	c := open(t, testutil.Shared(t, "data", "stories260K.safetensors"))
	fp8 := nn.DefaultFP8()
	m, err := hf.Load(t.Context(), c, hf.Options{
		Workers: 1, Configure: func(c *nn.Config) { c.FP8 = &fp8 },
	})
	require.NoError(t, err)
	require.Equal(t, &fp8, m.Config().FP8)
	require.Equal(t, 1, m.Config().Workers)
	_, err = hf.Load(t.Context(), c, hf.Options{
		Configure: func(c *nn.Config) { c.Dim = 128 },
	})
	require.ErrorContains(t, err, "Options.Configure changes sizes or constants")
}
