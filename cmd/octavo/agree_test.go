package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestAgree has dumps of one layer, which one engine has in float32 and one has multiplied by
// three, and command lines that are wrong.
func TestAgree(t *testing.T) {
	m, model, _ := byteModel(t)
	const name = "model.layers.1.mlp.up_proj"
	w := m.Param(name + ".weight")
	const tokens = 12
	x, y := make([]float32, tokens*w.Cols), make([]float32, tokens*w.Rows)
	for i := range x {
		x[i] = float32(i*i%37)/8 - 2
	}
	dump := func(file string, factor float32) string {
		for i := range tokens {
			for j := range w.Rows {
				sum := float32(0)
				for k := range w.Cols {
					sum += float32(x[i*w.Cols+k] * w.Value[j*w.Cols+k])
				}
				y[i*w.Rows+j] = factor * sum
			}
		}
		path := filepath.Join(t.TempDir(), file)
		tensors := []safetensors.Tensor{
			filetest.F32(name+".input", []int{tokens, w.Cols}, x...),
			filetest.F32(name+".output", []int{tokens, w.Rows}, y...),
		}
		require.NoError(t, safetensors.WriteFile(path, tensors, map[string]string{"engine": "a loop"}))
		return path
	}
	right, wrong := dump("right.safetensors", 1), dump("wrong.safetensors", 3)

	out := succeed(t, "agree", "--model", model, right, right)
	require.Contains(t, out, "right: what was looked at of 2 layers is within the bounds of what is claimed")
	page := filepath.Join(t.TempDir(), "page.html")
	r := octavo(nil, "agree", "--model", model, right, wrong, "--json", "--html", page)
	require.Equal(t, 1, r.status, r.stderr)
	var report struct {
		Outcome string
		Modules []struct {
			Name  string
			Sides [2]struct{ Outcome string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &report))
	require.Equal(t, "fail", report.Outcome)
	require.Len(t, report.Modules, 1)
	require.Equal(t, "pass", report.Modules[0].Sides[0].Outcome)
	require.Equal(t, "fail", report.Modules[0].Sides[1].Outcome)
	written, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(written), name)

	empty := filepath.Join(t.TempDir(), "empty.safetensors")
	require.NoError(t, safetensors.WriteFile(empty, nil, nil))
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{3, "no dump has a linear layer of the model", []string{"--model", model, empty, empty}},
		{2, "model", []string{right, wrong}},
		{2, "want two dumps", []string{"--model", model, right}},
		{2, "there is no recipe", []string{"--model", model, right, wrong, "--claim-a", "fp7"}},
		{2, "unknown model", []string{"--model", model, right, wrong, "--sums-b", "abacus"}},
		{2, "same file", []string{"--model", model, right, wrong, "--html", right}},
		{1, "nowhere", []string{"--model", model, right, "nowhere"}},
	} {
		r := octavo(nil, append([]string{"agree"}, c.args...)...)
		require.Equal(t, c.status, r.status, "%v: %s", c.args, r.stderr)
		require.Contains(t, r.stderr, c.says, c.args)
	}
}
