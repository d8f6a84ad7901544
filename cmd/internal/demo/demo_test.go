package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// sums are of the files of seed 1, on every machine and at every level.
var sums = map[string]string{
	"text.txt":                     "f0550b11bcd2e8d9e59b29dbb61c1ea80d1b02bbb27b928d4cec18c9986338c7",
	"model.safetensors":            "06f97a708449a6d30ad46f97f1c038932b74f7543d737a59b15eccd75a53df4b",
	"tokenizer.json":               "9023f040d2182dc8417bcb35f27df3199831ec7510290d2b3137283958ee0914",
	"tokenizer_config.json":        "1e6b55926ffe5ff5d493cd9814c488688e1ad46fe0f86dc86573d898e37f1e3c",
	"config.json":                  "b93fa90d278ee79d17f50a03a7453c55e8bd20ed79e0cf28516422c56324ccd4",
	"model.safetensors.index.json": "6b5a381ce376136e9563d30ab8b2b665ab2baf4327a3fd6a6830f5d94884431f",
	"activations.safetensors":      "213cb2fb63e58372069832bf628399f04f5b69513c5c88ac49f3666bf5689c7b",
	"layer.safetensors":            "8a950d4fe8977c54d28d3490ea82df00499df9d285abf85d1c217386c57c96ca",
	"kernel.safetensors":           "192a668e553ea84e5f15b70adc438d83a47d21a23256856893589bdcb492df0e",
	"wrong.safetensors":            "02a3182b22efda79ebb1e8b1fc934f1b41a98683c37915de120b6c622110861e",
}

// other makes the files of another seed.
var other = sync.OnceValues(func() ([]outdir.File, error) { return Make(context.Background(), 2, nil) })

func TestReproducible(t *testing.T) {
	var told []int64
	files, err := Make(t.Context(), 1, progress.Func(func(_ string, done, _ int64) { told = append(told, done) }))
	require.NoError(t, err)
	require.Len(t, told, steps)
	var list []string
	for _, f := range files {
		list = append(list, f.Name)
		sum := sha256.Sum256(f.Data)
		require.Equal(t, sums[f.Name], hex.EncodeToString(sum[:]), f.Name)
		require.NotEmpty(t, f.What)
	}
	require.Equal(t, Names(), list)
}

// TestModel: what is read back of the files of another seed predicts sentences that it has not
// seen. One that has only learned how often each byte is has the perplexity of that.
func TestModel(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model, as TestReproducible does")
	}
	files, err := other()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, f := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o666))
	}
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer c.Close()
	model, err := hf.Load(t.Context(), c, hf.Options{})
	require.NoError(t, err)
	text, count, n := newText(16*sequence, 4), [256]float64{}, 16*sequence-1
	tokens := make([]int32, 16*sequence)
	for i := range tokens {
		tokens[i] = int32(text[i])
		count[text[i]]++
	}
	loss, err := model.Evaluate(t.Context(), tokens[:n/sequence*sequence], tokens[1:n/sequence*sequence+1], n/sequence, sequence)
	require.NoError(t, err)
	entropy := 0.0
	for _, c := range count {
		if p := c / float64(len(tokens)); p > 0 {
			entropy -= p * math.Log(p)
		}
	}
	t.Logf("perplexity %.2f of %.2f", math.Exp(float64(loss)), math.Exp(entropy))
	require.Less(t, 4*math.Exp(float64(loss)), math.Exp(entropy))
}

// TestKernels checks that the right kernel is right and the wrong one wrong as the
// help says, under another seed.
func TestKernels(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model, as TestReproducible does")
	}
	files, err := other()
	require.NoError(t, err)
	data := map[string]*safetensors.File{}
	for _, f := range files {
		if filepath.Ext(f.Name) != ".safetensors" {
			continue
		}
		data[f.Name], err = safetensors.NewReader(bytes.NewReader(f.Data), int64(len(f.Data)))
		require.NoError(t, err)
	}
	sum := sha256.Sum256(files[1].Data)
	require.NotEqual(t, sums["model.safetensors"], hex.EncodeToString(sum[:]), "the seed counts")

	source := &operands.Source{File: data["layer.safetensors"]}
	x, err := (&operands.Operand{Codes: "x"}).Read(source)
	require.NoError(t, err)
	w, err := (&operands.Operand{Codes: "w"}).Read(source)
	require.NoError(t, err)
	kernel := oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128, Scales: oracle.ProductThenFMA}
	verdict := func(name string, claim judge.Claim) *judge.Verdict {
		c, err := data[name].Float32s("c")
		require.NoError(t, err)
		r, err := judge.Check(t.Context(), c, nil, x, w, claim, judge.Options{})
		require.NoError(t, err)
		return r
	}
	bits := judge.Claim{Want: judge.Predicted, Kernel: kernel}
	require.True(t, verdict("kernel.safetensors", bits).Pass)
	r := verdict("wrong.safetensors", bits)
	require.Equal(t, wrongFrom*wrongFrom, r.Comparison.Different)

	r = verdict("wrong.safetensors", judge.Claim{Accumulation: oracle.Accumulation{Kernel: kernel}})
	require.False(t, r.Pass)
	require.Equal(t, fault.Kind("k-lost"), r.Explanation.Findings[0].Fault.Kind)
	require.Equal(t, wrongBlock, r.Comparison.First.Suspect)
	require.Equal(t, wrongFrom, r.Comparison.First.Row)
	require.GreaterOrEqual(t, r.Comparison.First.Col, wrongFrom)
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Make(ctx, 1, progress.Func(func(string, int64, int64) { cancel() }))
	require.ErrorIs(t, err, context.Canceled)
}
