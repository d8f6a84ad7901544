package plan_test

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/plan"
)

// TestPublished reads in what models are published, whose files have so many bytes of weights and scales as
// are counted.
func TestPublished(t *testing.T) {
	for name, want := range map[string]string{
		"llama-bf16": "bf16", "llama-deepseek-fp8": "deepseek-v3", "moe-deepseek-fp8": "deepseek-v3", "llama-fp8-static": "te-current",
		"llama-ct-fp8-dynamic": "fp8-rows", "tied-ct-fp8-dynamic": "fp8-rows", "llama-ct-mxfp4": "mxfp4", "llama-ct-nvfp4a16": "nvfp4",
		"moe-ct-nvfp4a16": "nvfp4",
	} {
		dir := testutil.Shared(t, "golden", "checkpoints", name)
		m, err := plan.ReadModel(dir)
		require.NoError(t, err)
		require.Equal(t, want, m.Published, name)
		mem, err := plan.ServeJob{Model: m, Precision: precision(t, want), Tokens: 1}.Memory()
		require.NoError(t, err)
		tables := int64(2) // of the vocabulary, which is padded from 200 to 256
		if m.TiedHead {
			tables = 1
		}
		require.InEpsilon(t, storedBytes(t, dir)+tables*2*56*int64(m.Hidden), mem.Stages[0].Weights, 0.002, name)
	}
}

// storedBytes sums up the tensors of files, but for scales of inputs, keys and values.
func storedBytes(t *testing.T, dir string) (sum int64) {
	files, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var tensors map[string]struct {
			Offsets [2]int64 `json:"data_offsets"`
		}
		require.NoError(t, json.Unmarshal(data[8:8+binary.LittleEndian.Uint64(data)], &tensors))
		for name, of := range tensors {
			if !strings.HasSuffix(name, "input_scale") && !strings.HasSuffix(name, "k_scale") && !strings.HasSuffix(name, "v_scale") {
				sum += of.Offsets[1] - of.Offsets[0]
			}
		}
	}
	return sum
}

// TestPublishedConfigs has what is said in configurations of published models, and what no recipe counts.
func TestPublishedConfigs(t *testing.T) {
	read := func(rest string) string {
		dir := t.TempDir()
		text := `{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8, "vocab_size": 8, "num_attention_heads": 2, "intermediate_size": 8` + rest + `}`
		require.NoError(t, os.WriteFile(filepath.Join(dir, checkpoint.ConfigName), []byte(text), 0o600))
		c, err := checkpoint.ReadConfig(dir)
		require.NoError(t, err)
		m, err := plan.FromConfig(c)
		require.NoError(t, err)
		return m.Published
	}
	const fp8 = `, "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": `
	for rest, want := range map[string]string{
		``:                            "",
		`, "torch_dtype": "float32"`:  "",
		`, "torch_dtype": "bfloat16"`: "bf16",
		`, "dtype": "bfloat16"`:       "bf16",
		fp8 + `[128, 128]}`:           "deepseek-v3",
		fp8 + `[64, 64]}`:             "fp8 of blocks of 64x64",
		fp8 + `[128, 128], "modules_to_not_convert": ["lm_head", "model.layers.0.mlp.gate", "model.layers.0.input_layernorm"]}`: "deepseek-v3",
		fp8 + `[128, 128], "modules_to_not_convert": ["model.layers.0.self_attn.q_proj"]}`:                                      "fp8 of some layers",
		`, "quantization_config": {"quant_method": "gptq", "bits": 4}`:                                                          "gptq",
		`, "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}`: "mxfp4-experts",
	} {
		require.Equal(t, want, read(rest), rest)
	}
	for _, m := range plan.Models() {
		_, err := plan.NamedPrecision(m.Published)
		require.NoError(t, err, m.Name)
	}
}
