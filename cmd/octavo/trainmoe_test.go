package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTrainMoE: experts train, their loads are in the result, and a run that resumes ends as
// one that was never stopped.
func TestTrainMoE(t *testing.T) {
	args := []string{"--model", "moe", "--layers", "2", "--recipe", "deepseek-v3"}
	status, out, stdout, stderr := trainSmall(t, args...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "1.expert.7.down")
	require.Contains(t, stdout, "1.shared.up")
	require.Contains(t, stdout, "0.attention.kv_a ")
	require.NotContains(t, stdout, "0.expert", "the first layer is dense")
	require.Contains(t, stdout, "Tokens of each expert of DEEPSEEK in percent:\nlayer 1: ")
	data, err := os.ReadFile(filepath.Join(out, "result.json"))
	require.NoError(t, err)
	var result struct {
		Options struct{ MoE bool }
		Experts []struct {
			Layer  int
			Shares []float64
		}
	}
	require.NoError(t, json.Unmarshal(data, &result))
	require.True(t, result.Options.MoE)
	require.Len(t, result.Experts, 1)
	require.Equal(t, 1, result.Experts[0].Layer)
	require.Len(t, result.Experts[0].Shares, 8)
	var sum float64
	for _, s := range result.Experts[0].Shares {
		sum += s
	}
	require.InDelta(t, 1, sum, 1e-9)

	args = append(args, "--checkpoint-every", "2", "--keep-checkpoints", "2")
	status, out, _, stderr = trainSmall(t, args...)
	require.Zero(t, status, stderr)
	want, err := os.ReadFile(filepath.Join(out, "curves.csv"))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(out, "checkpoint-4")))
	require.NoError(t, os.Remove(filepath.Join(out, "curves.csv")))
	text := filepath.Join(out, "..", "..", "text")
	fail(t, 1, "was saved with another --model", "train", "--text", text, "--out", out, "--resume", "--model", "llama")
	succeed(t, "train", "--text", text, "--out", out, "--resume")
	got, err := os.ReadFile(filepath.Join(out, "curves.csv"))
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))

	status, _, _, stderr = trainSmall(t, "--model", "moe", "--save", filepath.Join(t.TempDir(), "model"))
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "--save writes a Llama")
	status, _, _, stderr = trainSmall(t, "--model", "moe", "--smooth", "channel")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "--model moe has no Smooth-SwiGLU")
}
