package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/hf"
)

// TestConvertSmooth folds outliers of a model of transformers: what is written gives the same logits,
// to the bit, where it is not quantized, and the certificate says what was done.
func TestConvertSmooth(t *testing.T) {
	model := testutil.Shared(t, "models", "mixtral")
	var ids strings.Builder
	for i := range 1100 {
		fmt.Fprintln(&ids, (i*7919+i/7*31)%320)
	}
	tokens := filepath.Join(t.TempDir(), "ids.txt")
	require.NoError(t, os.WriteFile(tokens, []byte(ids.String()), 0o666))
	out := filepath.Join(t.TempDir(), "out")
	stdout := succeed(t, "convert", model, "-o", out, "--to", "bf16", "--smooth", "0.5", "--tokens", tokens)
	text := strings.Join(strings.Fields(stdout), " ")
	require.Contains(t, text, "none of them rounded; the logits of 825 tokens are the same bits as before")
	require.Contains(t, text, "with operands of fp8, 274 tokens of the text that it was not fitted to diverge by")
	var logits [2][]float32
	for i, dir := range []string{model, out} {
		c, err := checkpoint.Open(dir)
		require.NoError(t, err)
		m, err := hf.Load(t.Context(), c, hf.Options{})
		require.NoError(t, err)
		logits[i], err = m.Logits(t.Context(), []int32{5, 300, 7, 8, 99}, 1, 5)
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
	require.Equal(t, logits[0], logits[1])
	entries, err := os.ReadDir(filepath.Dir(out))
	require.NoError(t, err)
	require.Len(t, entries, 1, "what was made meanwhile is gone")
	line := []string{"convert", model, "-o", out + "2", "--to", "bf16", "--smooth"}
	fail(t, 2, "give --calibrate or --tokens", append(line, "0.5")...)
	fail(t, 2, "--smooth is 1.5", append(line, "1.5", "--tokens", tokens)...)
	require.NoDirExists(t, out+"2")
	before, err := os.ReadFile(filepath.Join(out, "model.safetensors"))
	require.NoError(t, err)
	fail(t, 2, "the model is in", "convert", out, "-o", out, "--to", "bf16", "--smooth", "0.5", "--tokens", tokens, "--overwrite")
	after, err := os.ReadFile(filepath.Join(out, "model.safetensors"))
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// TestSmoothGain folds outliers that are made to cost four bits much: what it gains is told apart
// from nothing, and without outliers it is not.
func TestSmoothGain(t *testing.T) {
	for _, c := range []struct {
		factor float32
		says   string
	}{{64, ": it gains 0."}, {1, ": what it gains or loses is not told apart from nothing"}} {
		m, err := nn.NewLlama(nn.Config{Vocab: 256, Dim: 32, Layers: 2, Heads: 4, KVHeads: 4, Hidden: 64, Context: 64}, 1)
		require.NoError(t, err)
		for i, p := range m.Params() {
			switch {
			case p.Decay:
				p.Randomize(1, uint64(i), 0.2)
			case strings.HasSuffix(p.Name, "layernorm.weight"):
				p.Value[3] *= c.factor
			}
			for _, kind := range []string{"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"} {
				for row := 0; strings.Contains(p.Name, kind) && row < p.Rows; row++ {
					p.Value[row*p.Cols+3] /= c.factor
				}
			}
		}
		folder := t.TempDir()
		model, text := filepath.Join(folder, "model"), filepath.Join(folder, "text")
		require.NoError(t, hf.Save(t.Context(), m, model, hf.SaveOptions{Bytes: true}))
		var bytes []byte
		for i := range 2400 {
			bytes = append(bytes, byte(32+(i*7919+i/7*31)%90))
		}
		require.NoError(t, os.WriteFile(text, bytes, 0o666))
		out := succeed(t, "convert", model, "-o", filepath.Join(folder, "out"), "--to", "ct-mxfp4", "--smooth", "0.5", "--calibrate", text)
		require.Contains(t, strings.Join(strings.Fields(out), " "), c.says, c.factor)
	}
}
