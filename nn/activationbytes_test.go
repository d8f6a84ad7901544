package nn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

// TestActivationBytes counts on paper, for blocks of 1x128.
func TestActivationBytes(t *testing.T) {
	const batch, seq, rows = 9, 19, 171
	cfg := withFP8(ragged(), DefaultFP8())
	cfg.Smoothing = &swiglu.Smoothing{Axis: swiglu.PerToken}
	const dim, kv, hidden, layers, heads, vocab = 24, 12, 141, 2, 4, 128
	const blocksOfRows, blocksOfHidden = 2, 2

	stream := dim + layers*2*dim // what comes in, and what each half of a layer makes of it
	norms, head := (2*layers+1)*1, dim+vocab+1
	attention, smoothing := dim+2*kv, 1
	always := rows * (stream + norms + head + layers*(attention+smoothing))
	probs := batch * heads * seq * seq
	inputs := rows * (dim + dim + dim + hidden)
	branches := rows * 2 * hidden
	for f, want := range map[ActivationFormat]ActivationBytes{
		ActivationsFP32: {Float32: 4 * (always + layers*(probs+inputs+branches))},
		ActivationsFP8: {
			Float32: 4 * (always + layers*branches),
			Codes:   layers * inputs,
			Scales:  4 * layers * (3*dim + hidden) * blocksOfRows,
		},
		ActivationsFP8SwiGLU: {
			Float32: 4 * always,
			Codes:   layers * (rows*3*dim + branches),
			Scales:  4 * layers * (3*dim*blocksOfRows + 2*rows*blocksOfHidden),
		},
		ActivationsDeepSeekV3: {
			Float32: 4 * always,
			Codes:   layers * (rows*2*dim + rows*dim*12/8 + branches),
			Scales:  4 * layers * rows * (2 + 1 + 2*blocksOfHidden),
		},
	} {
		m := livelyModel(t, kept(cfg, f))
		require.Zero(t, m.ActivationBytes())
		tokens := someTokens(1, rows, vocab)
		for _, shape := range [][2]int{{10, 19}, {batch, seq}} { // the larger first, so that memory is left
			tokens = someTokens(1, shape[0]*shape[1], vocab)
			_, err := m.Loss(t.Context(), tokens, tokens, shape[0], shape[1])
			require.NoError(t, err)
		}
		require.Equal(t, want, m.ActivationBytes(), f)
		require.Equal(t, want.Float32+want.Codes+want.Scales, m.ActivationBytes().Total())
		require.NoError(t, m.Backward(t.Context()))
		_, err := m.Evaluate(t.Context(), tokens[:3], tokens[:3], 1, 3)
		require.NoError(t, err)
		require.Equal(t, want, m.ActivationBytes(), "%v: still that of the last Loss", f)
	}
}

// TestCopiesOfTheirOwn: layers with a history or a draw each keep their own copy of
// an input that several read.
func TestCopiesOfTheirOwn(t *testing.T) {
	const codes = 2 * 10 * (3*24 + 24 + 2*24 + 141)
	_, m := twins(t, withFP8(ragged(), ProfileFP8(scaling.TEDelayed, fp8.E5M2)), ActivationsFP8, 2, 5)
	require.Equal(t, codes, m.ActivationBytes().Codes)
	require.Equal(t, 2*4*7, m.ActivationBytes().Scales, "one for each layer")
	_, m = twins(t, withFP8(ragged(), randomFP8()), ActivationsFP8, 2, 5)
	require.Equal(t, codes, m.ActivationBytes().Codes)
}

// TestKeptMemoryIsReused by smaller batches, and by as large ones after them.
func TestKeptMemoryIsReused(t *testing.T) {
	_, m := twins(t, withFP8(ragged(), DefaultFP8()), ActivationsFP8SwiGLU, 3, 7)
	memory := func() []*byte {
		b := m.blocks[1]
		return []*byte{&b.Attention.Key.kept.Codes[0], &b.Attention.Output.kept.Codes[0], &b.MLP.inFP8.u.Codes[0], &m.shared.scratch.a.Codes[0]}
	}
	require.NoError(t, m.Backward(t.Context()))
	first := memory()
	for _, shape := range [][2]int{{1, 4}, {3, 7}} {
		tokens := someTokens(2, shape[0]*shape[1], 128)
		_, err := m.Loss(t.Context(), tokens, tokens, shape[0], shape[1])
		require.NoError(t, err)
		for i, p := range memory()[:3] {
			require.Same(t, first[i], p, "buffer %d, shape %v", i, shape)
		}
		require.NoError(t, m.Backward(t.Context()))
		require.Same(t, first[3], memory()[3])
	}
}
