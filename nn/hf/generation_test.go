package hf_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestEnds reads both files that say which tokens end a text.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		config, generation string
		want               []int32
		says               string
	}{
		{"", "", nil, ""},
		{`{"eos_token_id": 2}`, "", []int32{2}, ""},
		{`{"eos_token_id": null}`, `{}`, nil, ""},
		{`{"eos_token_id": 2}`, `{"eos_token_id": [128001, 128009]}`, []int32{128001, 128009}, ""},
		{`{"eos_token_id": [3]}`, `{"eos_token_id": null}`, []int32{3}, ""},
		{`{"eos_token_id": "2"}`, "", nil, `config.json: eos_token_id is "2": want the ID of a token`},
		{"", `{"eos_token_id": [1, -1]}`, nil, "generation_config.json: eos_token_id is [1,-1]: want IDs"},
		{"", `{"eos_token_id": [1, null]}`, nil, "[1,null]: want the ID of a token, or a list of them"},
		{`{"eos_token_id": [null]}`, "", nil, "config.json: eos_token_id is [null]: want the ID of a token"},
		{`{"eos_token_id": 2}`, `{"eos_token_id": []}`, []int32{}, ""},
		{`{"eos_token_id": [1, 2.5]}`, "", nil, "eos_token_id is [1,2.5]: want the ID of a token"},
		{"", `[]`, nil, "generation_config.json: want a JSON object"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"config.json": c.config, "generation_config.json": c.generation} {
			if text != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
			}
		}
		infos := []safetensors.Info{{Name: "x", DType: safetensors.F32, Shape: []int{0}}}
		write := func(w *safetensors.Writer) error { return w.Next("x") }
		require.NoError(t, safetensors.WriteFileFunc(filepath.Join(dir, "model.safetensors"), infos, nil, write))
		got, err := hf.Ends(open(t, dir))
		if c.says != "" {
			require.ErrorIs(t, err, hf.ErrConfig)
			require.ErrorContains(t, err, c.says)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}

// TestCacheScales reads scales of a golden checkpoint, and of some that lack what it has.
func TestCacheScales(t *testing.T) {
	golden := testutil.Shared(t, "golden", "checkpoints", "llama-fp8-static")
	c := open(t, golden)
	config, err := hf.Config(c)
	require.NoError(t, err)
	keys, values, err := hf.CacheScales(c, config.Layers)
	require.NoError(t, err)
	require.Len(t, keys, config.Layers)
	for layer, name := range []string{"model.layers.0.self_attn.", "model.layers.1.self_attn."} {
		for which, got := range map[string][]float32{"k_scale": keys, "v_scale": values} {
			e, ok := c.Entry(name + which)
			require.True(t, ok)
			want, err := c.File(e.File).Float32s(e.Name)
			require.NoError(t, err)
			require.Equal(t, want[0], got[layer])
		}
	}
	_, _, err = hf.CacheScales(c, config.Layers+1)
	require.ErrorIs(t, err, hf.ErrTensor)
	require.ErrorContains(t, err, ".self_attn.v_scale is missing, which other layers have")
	keys, values, err = hf.CacheScales(open(t, testutil.Shared(t, "golden", "checkpoints", "llama-bf16")), 2)
	require.NoError(t, err)
	require.Nil(t, keys)
	require.Nil(t, values)

	for _, scheme := range []map[string]any{
		{"num_bits": 4.0}, {"num_bits": 4.0, "type": "float"}, {"num_bits": 8.0, "type": "int"},
	} {
		c.Config.Quantization["kv_cache_scheme"] = scheme
		keys, _, err = hf.CacheScales(c, config.Layers)
		require.NoError(t, err)
		require.Nil(t, keys, "of another format: %v", scheme)
	}
	c.Config.Quantization["kv_cache_scheme"] = map[string]any{"num_bits": 8.0, "type": "float"}
	keys, _, err = hf.CacheScales(c, config.Layers)
	require.NoError(t, err)
	require.Len(t, keys, config.Layers)
}
