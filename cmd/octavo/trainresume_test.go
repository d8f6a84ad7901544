package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTrainRecipe: what the FP8 model does is said wherever a run is described, and
// it makes a difference.
func TestTrainRecipe(t *testing.T) {
	curves := map[string]string{}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"gradients E4M3, moments fp32, activations fp32", nil},
		{"gradients E4M3 rounded at random, moments fp32, activations fp32", []string{"--stochastic"}},
		{"gradients E4M3, moments bf16, activations fp32", []string{"--moments", "bf16"}},
		{"gradients E4M3, moments fp8, activations fp32", []string{"--moments", "fp8"}},
		{"gradients E4M3, moments fp8-expanded, activations fp32", []string{"--moments", "fp8-expanded"}},
		{"gradients E4M3, moments fp32, activations fp8-swiglu", []string{"--activations", "fp8-swiglu"}},
	} {
		status, out, stdout, stderr := trainSmall(t, c.args...)
		require.Zero(t, status, stderr)
		first, _, _ := strings.Cut(stdout, "\n")
		require.True(t, strings.HasSuffix(first, "FP8: te-block-pow2, "+c.says), first)
		page, err := os.ReadFile(filepath.Join(out, "index.html"))
		require.NoError(t, err)
		require.Contains(t, string(page), "FP8: te-block-pow2, "+c.says+".")
		data, err := os.ReadFile(filepath.Join(out, "curves.csv"))
		require.NoError(t, err)
		require.NotContains(t, curves, string(data), "%q and %q", c.says, curves[string(data)])
		curves[string(data)] = c.says
	}
	_, out, _, _ := trainSmall(t, "--activations", "fp8")
	data, err := os.ReadFile(filepath.Join(out, "curves.csv"))
	require.NoError(t, err)
	require.Equal(t, "gradients E4M3, moments fp32, activations fp32", curves[string(data)], "the same bits")
}

var times = regexp.MustCompile(` +time .*`)

// TestTrainResume runs four steps, loses what was written after them, and goes on.
func TestTrainResume(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	checkpoints := []string{"--out", out, "--checkpoint-every", "3"}
	status, _, want, stderr := trainSmall(t, checkpoints...)
	require.Zero(t, status, stderr)
	require.Empty(t, stderr)
	files := map[string]string{}
	for _, name := range []string{"curves.csv", "telemetry.csv"} {
		data, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		files[name] = string(data)
		require.NoError(t, os.Remove(filepath.Join(out, name)))
	}
	require.DirExists(t, filepath.Join(out, "checkpoint-0000003"))

	status, _, got, stderr := trainSmall(t, append(checkpoints, "--resume")...)
	require.Zero(t, status, stderr)
	require.Empty(t, stderr)
	require.Equal(t, times.ReplaceAllString(want, ""), times.ReplaceAllString(got, ""))
	for name, data := range files {
		again, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		require.Equal(t, data, string(again), name)
	}

	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--out", out, "--resume", "--moments", "fp8"}, 1, "octavo: --moments is fp8, but " + filepath.Join(out, "checkpoint-0000003") + " was saved with fp32: resume with the same\n"},
		{[]string{"--out", out, "--checkpoint-every", "1"}, 1, "is of an earlier run: go on with it by --resume, or name another directory with --out\n"},
	} {
		status, _, stdout, stderr := trainSmall(t, c.args...)
		require.Equal(t, c.status, status)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.says)
	}

	older, newer := filepath.Join(out, "checkpoint-0000003"), filepath.Join(out, "checkpoint-0000004")
	require.NoError(t, os.Mkdir(newer, 0o777))
	status, _, got, stderr = trainSmall(t, "--out", out, "--resume")
	require.Zero(t, status, stderr)
	require.Equal(t, times.ReplaceAllString(want, ""), times.ReplaceAllString(got, ""))
	require.True(t, strings.HasPrefix(stderr, "octavo: warning: checkpoint "+newer+" cannot be used: "), stderr)

	require.NoError(t, os.RemoveAll(older))
	status, _, stdout, stderr := trainSmall(t, "--out", out, "--resume")
	require.Equal(t, 1, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, newer+" cannot be used: ")
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
}
