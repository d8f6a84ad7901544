package planning

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/plan"
)

func ask(t *testing.T, name string, l plan.Layout) Ask {
	m, err := plan.Named(name)
	require.NoError(t, err)
	bf16, err := plan.NamedPrecision("bf16")
	require.NoError(t, err)
	return Ask{Train: plan.TrainJob{Model: m, Layout: l, Precision: bf16, Sequence: 4096, Library: plan.TransformerEngine}}
}

// TestText: what is printed fits 80 columns, and kinds add up to totals.
func TestText(t *testing.T) {
	a := ask(t, "deepseek-v3", plan.Layout{Ranks: 1024, Pipeline: 16, Expert: 64, Last: 1, Zero: 1})
	a.Card, a.Tokens, a.MFU = 80, 14.8e12, 0.4
	r, err := New(a)
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	for line := range strings.Lines(text.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 81, line)
	}
	require.Contains(t, text.String(), "671,026,419,200 parameters, 37,552,297,472 on the path")
	require.Contains(t, text.String(), "1,024 ranks, 16 pipeline parallel, 64 expert parallel, 64 data parallel, ZeRO-1.")
	require.Contains(t, text.String(), "    1   64-127      4")
	t.Log("\n" + text.String())

	var object map[string]any
	var encoded bytes.Buffer
	require.NoError(t, r.WriteJSON(&encoded))
	require.NoError(t, json.Unmarshal(encoded.Bytes(), &object))
	for _, key := range []string{"model", "parameters", "layout", "data", "precision", "training", "stages", "highest", "card", "tooLarge", "flops", "step", "run"} {
		require.Contains(t, object, key)
	}
	require.NotContains(t, object, "serving")
}

func TestPage(t *testing.T) {
	a := ask(t, "llama-3-70b", plan.Layout{Tensor: 8, Pipeline: 4})
	a.Card = 80
	for _, pipeline := range []int{1, 4, 20} {
		a.Train.Layout.Pipeline = pipeline
		r, err := New(a)
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, r.WritePage(&text, "octavo plan llama-3-70b", "octavo test"))
		require.Contains(t, text.String(), "octavo plan llama-3-70b")
		require.Equal(t, pipeline > 1, strings.Contains(text.String(), "What a rank of each stage has"))
	}
}

func TestServing(t *testing.T) {
	m, err := plan.Named("kimi-k2")
	require.NoError(t, err)
	r, err := New(Ask{Serve: &plan.ServeJob{Model: m, Tokens: 100}})
	require.NoError(t, err)
	require.EqualValues(t, 70_272, r.Serving.KVBytes)
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.Contains(t, text.String(), "a token leaves 70,272 bytes")
	require.NotContains(t, text.String(), "optimizer")
	t.Log("\n" + text.String())
}

func TestQuotes(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, WriteQuotes(&text, false))
	for line := range strings.Lines(text.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 81, line)
	}
	require.Contains(t, text.String(), "40.06%")
	require.Contains(t, text.String(), "14.63%   30.72% with 2.1e+25")
	t.Log("\n" + text.String())
}
