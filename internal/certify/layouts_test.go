package certify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/parallel/layers"
)

// TestLayouts: several micro-batches and interleaved stages too are what one rank computes.
func TestLayouts(t *testing.T) {
	for text, experts := range map[string]bool{
		"data=2,pipeline=2,micro=2,zero=3":                          true,
		"pipeline=2,chunks=1,micro=4,slices=2":                      false,
		"data=2,expert=2,tensor=2,slices=4,shards=4,zero=1,micro=2": true,
	} {
		l, err := ParseLayout(text)
		require.NoError(t, err)
		r, err := Run(t.Context(), Options{Recipe: Delayed, Steps: 2, Seed: 2, Cut: &Cut{Layout: l, Experts: experts}})
		require.NoError(t, err)
		require.True(t, r.Equal, "%s: %v", text, r.Certificates[0].First)
		require.Len(t, r.Certificates, 1)
		require.Greater(t, r.Certificates[0].Equal, 2*20, "all weights in both steps")
	}
}

// TestLayoutSends: what is rounded on the way differs where the twin does not round, in the
// first tensor that it reaches, and only there.
func TestLayoutSends(t *testing.T) {
	for sends, first := range map[string]string{
		"weight=bf16":         "model.layers.0.input_layernorm.output",
		"gradient=e4m3-block": "gradient.norm",
		"forward=bf16":        "model.layers.0.input_layernorm.output", // of the embedding, too
		"activation=mxfp8":    "model.layers.1.input_layernorm.output",
		"backward=e5m2-token": "model.layers.1.mlp.slice.0.down_proj.gradient",
	} {
		l, err := ParseLayout("data=2,tensor=2,pipeline=2,zero=2")
		require.NoError(t, err)
		l.Exchanges, err = ParseSends(sends)
		require.NoError(t, err)
		r, err := Run(t.Context(), Options{Steps: 1, Seed: 2, Cut: &Cut{Layout: l}})
		require.NoError(t, err)
		require.False(t, r.Equal, sends)
		require.Equal(t, 1, r.Failed())
		require.Contains(t, r.Certificates[0].First.Tensor, first, sends)
		require.Zero(t, r.Certificates[0].First.Step)
	}
	l, err := ParseLayout("data=4,zero=3")
	require.NoError(t, err)
	l.Exchanges, err = ParseSends("weight=e4m3-block,gradient=bf16")
	require.NoError(t, err)
	r, err := Run(t.Context(), Options{Steps: 2, Seed: 2, Cut: &Cut{Layout: l, TwinSends: true}})
	require.NoError(t, err)
	require.True(t, r.Equal, "%v", r.Certificates[0].First)
	require.Equal(t, "data=4,zero=3, gradient bf16, weight e4m3-block", r.Certificates[0].To)
}

func TestParseLayout(t *testing.T) {
	l, err := ParseLayout("data=4,tensor=2,pipeline=3,chunks=2,expert=2,zero=1,shards=8,micro=6,slices=4")
	require.NoError(t, err)
	require.Equal(t, layers.Layout{
		Data: 4, Tensor: 2, Pipeline: 3, Chunks: 2, Expert: 2, Zero: 1, Shards: 8, Micro: 6, Slices: 4,
	}, l)
	require.Equal(t, "data=4,tensor=2,pipeline=3,chunks=2,expert=2,zero=1", layoutText(l))
	require.Equal(t, "one rank", layoutText(layers.Layout{}))
	for text, says := range map[string]string{
		"":                `"": want NAME=NUMBER`,
		"data":            `"data": want NAME=NUMBER`,
		"data=2,,zero=1":  `"": want NAME=NUMBER`,
		"data=-1":         `"data=-1": want NAME=NUMBER`,
		"ranks=2":         `for NAME one of data, tensor, `,
		"zero=4":          "Layout.Zero is 4: want 0 to 3",
		"data=3,expert=2": "Layout.Expert is 2: it must divide Data = 3",
	} {
		_, err := ParseLayout(text)
		require.ErrorContains(t, err, says)
	}
	for text, says := range map[string]string{
		"weight":             `unknown wire ""`,
		"bits=bf16":          `"bits=bf16": want EXCHANGE=FORM`,
		"gradient=bf16,loss": `"loss": collective: unknown wire`,
	} {
		_, err := ParseSends(text)
		require.ErrorContains(t, err, says)
	}
}
