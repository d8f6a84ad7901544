package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/nn/tokenizer"
	corpora "github.com/octavo-fp8/octavo/train"
)

// loadSaved loads a model from a directory.
func loadSaved(t *testing.T, dir string) *nn.Llama {
	t.Helper()
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer c.Close()
	m, err := hf.Load(t.Context(), c, hf.Options{})
	require.NoError(t, err)
	return m
}

// heldOut returns the loss of a model on what trainSmall holds out.
func heldOut(t *testing.T, m *nn.Llama) float64 {
	t.Helper()
	text := strings.Repeat("round and round the rugged rock. ", 50)
	corpus, err := corpora.NewCorpus([]byte(text), 8*2*16+1, 1)
	require.NoError(t, err)
	loss, err := (&trial.Run{Model: m}).HeldOut(t.Context(), corpus, 8, 2, 16)
	require.NoError(t, err)
	return loss
}

type heldOutLosses struct{ FP32, FP8 struct{ HeldOutLoss float64 } }

// TestTrainSave takes a model that was trained through conversion and back: what is saved
// has the loss that the run reports, to the bit.
func TestTrainSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "model")
	status, out, stdout, stderr := trainSmall(t, "--json", "--save", dir, "--smooth", "channel",
		"--dim", "32", "--hidden", "64")
	require.Zero(t, status, stderr)
	var result heldOutLosses
	require.NoError(t, json.Unmarshal([]byte(stdout), &result))
	m := loadSaved(t, dir)
	require.Equal(t, result.FP32.HeldOutLoss, heldOut(t, m))
	require.Equal(t, 16, m.Config().Context)
	manifest, err := outdir.Read(dir)
	require.NoError(t, err)
	require.Contains(t, manifest.Command, " --smooth channel ")
	require.Contains(t, manifest.Command, " --save "+shellQuote(dir))
	require.ElementsMatch(t, append(manifest.Files, outdir.ManifestName), entriesOf(t, dir))
	require.NotContains(t, entriesOf(t, out), "model.safetensors")

	tokens, err := tokenizer.Read(filepath.Join(dir, "tokenizer.json"))
	require.NoError(t, err)
	text := "\x00\t 'twas  caf\u00e9\n\n\U0001f600\x7f"
	got, err := tokens.Encode(text)
	require.NoError(t, err)
	var want []int32
	for _, b := range []byte(text) {
		want = append(want, int32(b))
	}
	require.Equal(t, want, got)
	require.Empty(t, tokens.Prefix())

	for _, to := range []string{"deepseek-v3", "ct-mxfp8", "bf16"} {
		converted := filepath.Join(t.TempDir(), to)
		succeed(t, "convert", dir, "-o", converted, "--to", to)
		require.InDelta(t, result.FP32.HeldOutLoss, heldOut(t, loadSaved(t, converted)), 0.01)
		require.FileExists(t, filepath.Join(converted, "tokenizer.json"))
	}
	succeed(t, "lint", dir)
}

// TestTrainSaveFP8 saves the other model, in place of the first.
func TestTrainSaveFP8(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	status, _, stdout, stderr := trainSmall(t, "--save", dir, "--save-model", "fp8")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "\nThe model: "+dir+"\n")
	fp8 := heldOut(t, loadSaved(t, dir))

	status, _, _, stderr = trainSmall(t, "--save", dir)
	require.Equal(t, 2, status)
	require.Contains(t, stderr, dir+": it holds a run already: name another directory with --save, or")
	require.Equal(t, fp8, heldOut(t, loadSaved(t, dir)))

	status, _, _, stderr = trainSmall(t, "--save", dir, "--overwrite")
	require.Zero(t, status, stderr)
	require.NotEqual(t, fp8, heldOut(t, loadSaved(t, dir)))
}

// TestTrainSaveResumed saves a run that goes on in place of what it left before, but not of
// anything else.
func TestTrainSaveResumed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	status, out, _, stderr := trainSmall(t, "--save", dir, "--checkpoint-every", "2")
	require.Zero(t, status, stderr)
	first := heldOut(t, loadSaved(t, dir))
	resume := []string{"train", "--resume", "-o", out, "--steps", "6", "--save"}
	converted := filepath.Join(t.TempDir(), "converted")
	succeed(t, "convert", dir, "-o", converted, "--to", "bf16")
	fail(t, 2, converted+": it holds a run already", append(resume, converted)...)
	succeed(t, append(resume, dir)...)
	require.NotEqual(t, first, heldOut(t, loadSaved(t, dir)))
}

func TestTrainSaveRefuses(t *testing.T) {
	here := t.TempDir()
	foreign := filepath.Join(here, "foreign")
	require.NoError(t, os.Mkdir(foreign, 0o755))
	config := filepath.Join(foreign, "config.json")
	require.NoError(t, os.WriteFile(config, []byte("mine"), 0o644))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--save-model", "fp8"}, "--save-model says which model --save writes: give that too"},
		{[]string{"--save", ""}, "the name of the directory is empty: name one with --save"},
		{[]string{"--save", foreign}, config + " is there and is of no run: move it away, or name"},
		{[]string{"--save", config}, "it is there and is no directory: name another directory with --sa"},
		{[]string{"-o", here, "--save", here}, "the files of the run are in " + here + ": name another"},
	} {
		status, out, _, stderr := trainSmall(t, c.args...)
		require.NotZero(t, status, c.says)
		require.Contains(t, stderr, c.says)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		require.NoDirExists(t, out)
	}
	data, err := os.ReadFile(config)
	require.NoError(t, err)
	require.Equal(t, "mine", string(data))
	require.Equal(t, []string{"config.json"}, entriesOf(t, foreign))
}
