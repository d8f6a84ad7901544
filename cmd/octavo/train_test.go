package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// train runs octavo train on a small text with a small model.
func train(t *testing.T, more ...string) (status int, out, stdout, stderr string) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("round and round the rugged rock. ", 50)), 0o644))
	out = filepath.Join(dir, "new", "out")
	args := append([]string{"train", "--text", text, "--out", out, "--steps", "4", "--batch", "2", "--context", "16",
		"--dim", "16", "--layers", "1", "--heads", "2", "--hidden", "24"}, more...)
	var o, e bytes.Buffer
	status = run(args, strings.NewReader(""), &o, &e)
	return status, out, o.String(), e.String()
}

func TestTrain(t *testing.T) {
	status, out, stdout, stderr := train(t)
	require.Zero(t, status, stderr)
	require.Empty(t, stderr)
	for _, want := range []string{"FP32", "FP8", "gap", "held-out loss", "0.mlp.down", "te-block-pow2", "index.html"} {
		require.Contains(t, stdout, want)
	}
	for _, name := range []string{"curves.csv", "telemetry.csv", "index.html"} {
		info, err := os.Stat(filepath.Join(out, name))
		require.NoError(t, err)
		require.Positive(t, info.Size(), name)
	}
	page, err := os.ReadFile(filepath.Join(out, "index.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "--profile te-block-pow2 --gradient-format e4m3 --smooth none")
}

func TestTrainJSON(t *testing.T) {
	status, _, stdout, stderr := train(t, "--json", "--profile", "te-delayed", "--gradient-format", "e5m2", "--smooth", "channel", "--seed", "7")
	require.Zero(t, status, stderr)
	var got struct {
		Steps     int    `json:"steps_done"`
		Gradient  string `json:"gradient_format"`
		Smoothing string
		Options   struct {
			Profile string
			Seed    int
		}
		FP8 struct {
			Loss float64 `json:"final_loss"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, 4, got.Steps)
	require.Equal(t, "E5M2", got.Gradient)
	require.Equal(t, "channel", got.Smoothing)
	require.Equal(t, "te-delayed", got.Options.Profile)
	require.Equal(t, 7, got.Options.Seed)
	require.Positive(t, got.FP8.Loss)
}

func TestTrainRefuses(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--steps", "0"}, 2, "--steps is 0"},
		{[]string{"--dim", "18", "--heads", "4"}, 2, "--dim is 18: want a multiple of 2·heads = 8"},
		{[]string{"--lr", "NaN"}, 2, "--lr is NaN"},
		{[]string{"--profile", "fp9"}, 2, `unknown profile "fp9"`},
		{[]string{"--smooth", "both"}, 2, "want none or channel or token"},
		{[]string{"--workers", "-1"}, 2, "--workers is -1"},
		{[]string{"--context", "4000"}, 1, "too short"},
		{[]string{"--text", "no-such-file"}, 1, "--text wants a file to train on"},
		{[]string{"stray"}, 2, `want no arguments, there is "stray"`},
	} {
		status, _, stdout, stderr := train(t, c.args...)
		require.Equal(t, c.status, status, c.args)
		require.Contains(t, stderr, c.says)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %q", stderr)
		require.Empty(t, stdout)
	}
}
