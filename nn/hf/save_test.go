package hf_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/swiglu"
)

// TestSave compares what is written of a model whose file has rows in the order of
// interleaved pairs with the tensors that the test itself puts into rotated halves.
func TestSave(t *testing.T) {
	m := load(t, testutil.Shared(t, "data", "stories260K.safetensors"))
	dir := filepath.Join(t.TempDir(), "new", "model")
	done := int64(0)
	require.NoError(t, hf.Save(t.Context(), m, dir, hf.SaveOptions{
		Progress: progress.Func(func(op string, n, total int64) { done = n - total }),
	}))
	require.Zero(t, done)
	f, err := safetensors.Open(filepath.Join(dir, "model.safetensors"))
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, map[string]string{"format": "pt"}, f.Metadata())
	want := stories(t)
	require.Len(t, f.Tensors(), len(want))
	for _, x := range want {
		info, ok := f.Info(x.Name)
		require.True(t, ok, x.Name)
		require.Equal(t, safetensors.F32, info.DType)
		require.Equal(t, x.Shape, info.Shape)
		data, err := f.Bytes(x.Name)
		require.NoError(t, err)
		require.Equal(t, x.Data, data, x.Name)
	}
	var config map[string]any
	readJSON(t, filepath.Join(dir, "config.json"), &config)
	require.Equal(t, map[string]any{
		"architectures": []any{"LlamaForCausalLM"}, "model_type": "llama",
		"torch_dtype": "float32", "vocab_size": 512.0, "hidden_size": 64.0,
		"intermediate_size": 172.0, "num_hidden_layers": 5.0, "num_attention_heads": 8.0,
		"num_key_value_heads": 4.0, "head_dim": 8.0, "max_position_embeddings": 256.0,
		"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": nil, "hidden_act": "silu",
		"tie_word_embeddings": true, "attention_bias": false, "mlp_bias": false,
		"bos_token_id": nil, "eos_token_id": nil,
	}, config)
	require.Equal(t, logits(t, m), logits(t, load(t, dir)))
}

func readJSON(t *testing.T, path string, to any) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, to))
}

// byteModel returns a model over bytes whose heads are of 6 elements, in groups of 3.
func byteModel(t *testing.T, c nn.Config) *nn.Llama {
	t.Helper()
	c.Vocab, c.Dim, c.Layers, c.Heads, c.KVHeads, c.Hidden, c.Context = 256, 36, 2, 6, 2, 40, 32
	m, err := nn.NewLlama(c, 3)
	require.NoError(t, err)
	return m
}

// TestSaveAndLoad saves and loads models of all kinds: all values have the same bits, or are
// rounded to BF16 once.
func TestSaveAndLoad(t *testing.T) {
	smoothing := swiglu.Smoothing{}
	fp8Recipe := nn.DefaultFP8()
	for name, c := range map[string]nn.Config{
		"plain": {}, "tied": {TieHead: true}, "theta": {RopeTheta: 5e5, NormEps: 1e-6},
		"linear": {RopeScaling: nn.RopeScaling{Factor: 4}},
		"llama3": {RopeScaling: nn.RopeScaling{Factor: 8, Original: 64, Low: 1, High: 4}},
		"recipe": {FP8: &fp8Recipe, Smoothing: &smoothing},
	} {
		for _, d := range []safetensors.DType{"", safetensors.F32, safetensors.BF16} {
			m, dir := byteModel(t, c), t.TempDir()
			o := hf.SaveOptions{Type: d, Bytes: true}
			require.NoError(t, hf.Save(t.Context(), m, dir, o))
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			require.ElementsMatch(t, names, hf.SavedFiles(o))
			got, err := hf.Load(t.Context(), open(t, dir), hf.Options{})
			require.NoError(t, err)
			want := m.Config()
			want.FP8, want.Smoothing = nil, nil
			require.Equal(t, want, got.Config(), name)
			for i, p := range m.Params() {
				if d == safetensors.BF16 {
					for i, x := range p.Value {
						p.Value[i] = fp8.BFloat16FromFloat32(x).Float32()
					}
				}
				require.Equal(t, bits(p.Value), bits(got.Params()[i].Value), "%s %s", name, p.Name)
			}
		}
	}
}

// TestByteTokenizer checks the tokenizer by what GPT-2 has for some bytes.
func TestByteTokenizer(t *testing.T) {
	dir := t.TempDir()
	m := byteModel(t, nn.Config{})
	require.NoError(t, hf.Save(t.Context(), m, dir, hf.SaveOptions{Bytes: true}))
	var got struct {
		AddedTokens   []any `json:"added_tokens"`
		Normalizer    any
		PreTokenizer  map[string]any `json:"pre_tokenizer"`
		Decoder       map[string]any
		PostProcessor any `json:"post_processor"`
		Model         struct {
			Type   string
			Vocab  map[string]int
			Merges []any
		}
	}
	readJSON(t, filepath.Join(dir, "tokenizer.json"), &got)
	require.Equal(t, "BPE", got.Model.Type)
	require.Equal(t, []any{}, got.Model.Merges)
	require.Len(t, got.Model.Vocab, 256)
	for text, b := range map[string]int{
		"Ā": 0, "Ċ": '\n', "Ġ": ' ', "!": '!', "a": 'a', "~": '~', "ġ": 127, "Ģ": 128,
		"ł": 160, "¡": 161, "¬": 172, "Ń": 173, "®": 174, "ÿ": 255,
	} {
		require.Equal(t, b, got.Model.Vocab[text], text)
	}
	seen := map[int]bool{}
	for _, b := range got.Model.Vocab {
		seen[b] = true
	}
	require.Len(t, seen, 256)
	for _, part := range []map[string]any{got.PreTokenizer, got.Decoder} {
		require.Equal(t, "ByteLevel", part["type"])
		require.Equal(t, false, part["add_prefix_space"])
		require.Equal(t, false, part["use_regex"])
	}
	require.Nil(t, got.Normalizer)
	require.Nil(t, got.PostProcessor)
	require.Empty(t, got.AddedTokens)
	var config map[string]any
	readJSON(t, filepath.Join(dir, "tokenizer_config.json"), &config)
	require.Equal(t, "PreTrainedTokenizerFast", config["tokenizer_class"])
	require.Equal(t, 32.0, config["model_max_length"])
}

func TestSaveRefuses(t *testing.T) {
	m := load(t, testutil.Shared(t, "data", "stories260K.safetensors"))
	dir := filepath.Join(t.TempDir(), "none")
	err := hf.Save(t.Context(), m, dir, hf.SaveOptions{Bytes: true})
	require.ErrorIs(t, err, hf.ErrConfig)
	require.ErrorContains(t, err, "tokens are bytes and the vocabulary is 512: want 256")
	err = hf.Save(t.Context(), m, dir, hf.SaveOptions{Type: safetensors.F16})
	require.ErrorContains(t, err, `Type is "F16": want F32 or BF16`)
	require.NoDirExists(t, dir)

	other := t.TempDir()
	index := filepath.Join(other, checkpoint.IndexName)
	require.NoError(t, os.WriteFile(index, []byte("{}"), 0o600))
	err = hf.Save(t.Context(), m, other, hf.SaveOptions{})
	require.ErrorIs(t, err, hf.ErrConfig)
	require.ErrorContains(t, err, index+": it is of another model")
	require.NoFileExists(t, filepath.Join(other, "model.safetensors"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, hf.Save(ctx, m, dir, hf.SaveOptions{}), context.Canceled)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}
