package main

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestTrainMoE: experts train, their loads are in the result, and a run that resumes ends as
// one that was never stopped.
func TestTrainMoE(t *testing.T) {
	args := []string{"--model", "moe", "--layers", "2", "--recipe", "deepseek-v3"}
	status, out, stdout, stderr := trainSmall(t, args...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "1.expert.7.down")
	require.Contains(t, stdout, "1.shared.up")
	require.Contains(t, stdout, "0.attn.kv_a ")
	require.NotContains(t, stdout, "0.expert", "the first layer is dense")
	require.Contains(t, stdout, "Tokens of each expert in percent:\nlayer 1, FP32: ")
	require.Contains(t, stdout, "\nlayer 1, DEEPSEEK: ")
	data, err := os.ReadFile(filepath.Join(out, "result.json"))
	require.NoError(t, err)
	var result moeResult
	require.NoError(t, json.Unmarshal(data, &result))
	require.True(t, result.Options.MoE)
	require.Len(t, result.Experts, 8)
	var sum float64
	for i, e := range result.Experts {
		require.Equal(t, 1, e.Layer)
		require.Equal(t, i, e.Expert)
		sum += e.FP8.Share
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
	data, err = os.ReadFile(filepath.Join(out, "result.json"))
	require.NoError(t, err)
	var resumed moeResult
	require.NoError(t, json.Unmarshal(data, &resumed))
	require.Equal(t, result.Experts, resumed.Experts, "tokens of the steps before count")

	status, _, _, stderr = trainSmall(t, "--model", "moe", "--smooth", "channel")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "--model moe has no Smooth-SwiGLU")
}

// moeResult is what result.json says of experts.
type moeResult struct {
	Options struct{ MoE bool }
	Experts []struct {
		Layer, Expert int
		FP32, FP8     struct {
			Tokens int64
			Share  float64
		}
		Input, DownInput, Gradient struct{ Amax, Saturated, Underflowed, Elements float64 }
	}
}

// TestTrainSaveMoE saves both models of a mixture of experts, which have the losses that the run
// reports, to the bit, here and by octavo evaluate, and survive conversion.
func TestTrainSaveMoE(t *testing.T) {
	for which, of := range map[string]func(heldOutLosses) float64{
		"fp32": func(r heldOutLosses) float64 { return r.FP32.HeldOutLoss },
		"fp8":  nil, // whose loss is that of FP8 products
	} {
		dir := filepath.Join(t.TempDir(), "model")
		status, out, stdout, stderr := trainSmall(t, "--model", "moe", "--layers", "2", "--json",
			"--save", dir, "--save-model", which)
		require.Zero(t, status, stderr)
		m := loadSaved(t, dir)
		require.NotZero(t, slices.Max(m.Blocks()[1].Experts.Router.Bias()))
		loss := heldOut(t, m)
		if of != nil {
			var result heldOutLosses
			require.NoError(t, json.Unmarshal([]byte(stdout), &result))
			require.Equal(t, of(result), loss)
		}
		data, err := os.ReadFile(filepath.Join(out, "..", "..", "text"))
		require.NoError(t, err)
		tail := filepath.Join(t.TempDir(), "tail")
		require.NoError(t, os.WriteFile(tail, data[len(data)-8*2*16-1:], 0o600))
		var report struct{ Loss struct{ Mean float64 } }
		require.NoError(t, json.Unmarshal([]byte(succeed(t, "evaluate", dir, "--text", tail, "--json")), &report))
		require.InDelta(t, loss, report.Loss.Mean, 1e-6)

		for _, to := range []string{"deepseek-v3", "bf16"} {
			converted := filepath.Join(t.TempDir(), to)
			succeed(t, "convert", dir, "-o", converted, "--to", to)
			require.InDelta(t, loss, heldOut(t, loadSaved(t, converted)), 0.01)
		}
		converted := filepath.Join(t.TempDir(), "calibrated")
		succeed(t, "convert", dir, "-o", converted, "--to", "fp8", "--calibrate", tail)
		require.InDelta(t, loss, heldOut(t, loadSaved(t, converted)), 0.01)
		succeed(t, "lint", dir)
		succeed(t, "inspect", dir)
		requireContinued(t, dir, m)
	}
}

// requireContinued compares what octavo generate continues a prompt with, its weights in FP32 and
// its cache in BF16, with the most likely tokens of the model that was loaded.
func requireContinued(t *testing.T, dir string, m *nn.Llama) {
	t.Helper()
	const prompt, n = "round a", 6
	type request struct {
		Tokens   []int32
		LogProbs []float64
	}
	var report, scaled struct{ Requests []request }
	args := []string{"generate", "--model", dir, "--prompt", prompt, "--recipe", "none", "--quiet",
		"--json", "--tokens", strconv.Itoa(n)}
	out := succeed(t, append(args, "--cache", "bf16")...)
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	var tokens []int32
	for _, b := range []byte(prompt) {
		tokens = append(tokens, int32(b))
	}
	require.Len(t, report.Requests[0].Tokens, n)
	for _, token := range report.Requests[0].Tokens {
		logits, err := m.Logits(t.Context(), tokens, 1, len(tokens))
		require.NoError(t, err)
		last := logits[len(logits)-256:]
		require.InDelta(t, slices.Max(last), last[token], 1e-2)
		tokens = append(tokens, token)
	}

	require.NoError(t, json.Unmarshal([]byte(succeed(t, args...)), &report))
	addScales(t, dir)
	require.NoError(t, json.Unmarshal([]byte(succeed(t, args...)), &scaled))
	require.Equal(t, report, scaled, "scales of latents are not those of keys")
}

// addScales gives the attention of a model scales that no key or value fits.
func addScales(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "model.safetensors")
	f, err := safetensors.Open(path)
	require.NoError(t, err)
	var all []safetensors.Tensor
	for _, info := range f.Tensors() {
		data, err := f.Bytes(info.Name)
		require.NoError(t, err)
		all = append(all, safetensors.Tensor{Info: info, Data: slices.Clone(data)})
	}
	require.NoError(t, f.Close())
	for _, name := range []string{"0.self_attn.k", "0.self_attn.v", "1.self_attn.k", "1.self_attn.v"} {
		all = append(all, safetensors.Tensor{
			Info: safetensors.Info{Name: "model.layers." + name + "_scale", DType: safetensors.F32},
			Data: binary.LittleEndian.AppendUint32(nil, math.Float32bits(1e9)),
		})
	}
	require.NoError(t, safetensors.WriteFile(path, all, nil))
}
