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
