package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// sums are of the files of seed 1, on every machine and at every level.
var sums = map[string]string{
	"text.txt":                "f0550b11bcd2e8d9e59b29dbb61c1ea80d1b02bbb27b928d4cec18c9986338c7",
	"model.safetensors":       "7a38d823e47be23397a132f884ebeb72807edbfef65660ad295ff84be571001e",
	"activations.safetensors": "bc435eaaaf0fc500b52e412829b2acf3f9e9199e09c6dacd402c93377d7355ae",
	"layer.safetensors":       "b8f6c9d37bfea8029540bdea8ae9fd7a233e7e0dc4cd4e182258eda3d9de1978",
	"kernel.safetensors":      "3d63b5837e028d41e0075f58f938b9958fc205172c1c16f0d2a37124f105aa2b",
	"wrong.safetensors":       "bbdc4f7bf700c0eafe69160707d3095d6ebeba1d374f7a3f8ca64cae60296266",
}

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

// TestKernels checks that the right kernel is right and the wrong one wrong as the
// help says, under another seed.
func TestKernels(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model, as TestReproducible does")
	}
	files, err := Make(t.Context(), 2, nil)
	require.NoError(t, err)
	data := map[string]*safetensors.File{}
	for _, f := range files[1:] {
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
