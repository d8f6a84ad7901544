package nn

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

var tiny = Config{Vocab: 11, Dim: 8, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 12, Context: 6}.withDefaults()

func TestRMSNormGradient(t *testing.T) {
	const rows = 5
	n := newRMSNorm("norm", tiny)
	copy(n.gain.Value, randoms(1, tiny.Dim))
	x, dy := randoms(2, rows*tiny.Dim), randoms(3, rows*tiny.Dim)
	loss := func() float64 { return dot64(n.forward(x), dy) }
	loss()
	dx := append([]float32{}, n.backward(dy)...)
	requireGradient(t, "x", dx, x, loss)
	requireGradient(t, "gain", n.gain.Grad, n.gain.Value, loss)
}

func TestRopeGradient(t *testing.T) {
	const rows, heads, seq = 6, 2, 3
	cfg := tiny
	cfg.Dim, cfg.Heads = 8, heads
	r := newRope(cfg)
	x, dy := randoms(1, rows*cfg.Dim), randoms(2, rows*cfg.Dim)
	loss := func() float64 {
		y := append([]float32{}, x...)
		r.forward(y, heads, seq)
		return dot64(y, dy)
	}
	dx := append([]float32{}, dy...)
	r.backward(dx, heads, seq)
	requireGradient(t, "x", dx, x, loss)
}

// TestRopeAngles checks the second position against angles computed by package
// math: pair i turns by theta**(-2i/headDim).
func TestRopeAngles(t *testing.T) {
	cfg := tiny
	cfg.Dim, cfg.Heads = 8, 1
	x := []float32{1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0}
	newRope(cfg).forward(x, 1, 2)
	require.Equal(t, []float32{1, 0, 1, 0, 1, 0, 1, 0}, x[:8])
	for i := range 4 {
		angle := math.Pow(1e4, -float64(i)/4)
		require.InDelta(t, math.Cos(angle), x[8+2*i], 1e-7)
		require.InDelta(t, math.Sin(angle), x[8+2*i+1], 1e-7)
	}
}

func TestAttentionGradient(t *testing.T) {
	const batch, seq = 2, 5
	a := newAttention("", newRope(tiny), tiny, new(inputs), new(scratch))
	linears := []*Linear{a.query, a.key, a.value, a.output}
	for i, l := range linears {
		copy(l.Weight.Value, randoms(uint64(i), len(l.Weight.Value)))
	}
	x, dy := randoms(5, batch*seq*tiny.Dim), randoms(6, batch*seq*tiny.Dim)
	for i := range x {
		x[i] *= 0.3
	}
	loss := func() float64 {
		y, err := a.forward(x, batch, seq)
		if err != nil {
			panic(err)
		}
		return dot64(y, dy)
	}
	loss()
	dx, err := a.backward(dy)
	require.NoError(t, err)
	requireGradient(t, "x", append([]float32{}, dx...), x, loss)
	for _, l := range linears {
		requireGradient(t, l.Weight.Name, l.Weight.Grad, l.Weight.Value, loss)
	}
}

// TestAttentionIsCausal changes the last token: earlier outputs keep their bits.
func TestAttentionIsCausal(t *testing.T) {
	const seq = 5
	a := newAttention("", newRope(tiny), tiny, new(inputs), new(scratch))
	for i, l := range []*Linear{a.query, a.key, a.value, a.output} {
		copy(l.Weight.Value, randoms(uint64(i), len(l.Weight.Value)))
	}
	x := randoms(5, seq*tiny.Dim)
	y, err := a.forward(x, 1, seq)
	require.NoError(t, err)
	before := append([]float32{}, y...)
	last := (seq - 1) * tiny.Dim
	for i := last; i < len(x); i++ {
		x[i]++
	}
	y, err = a.forward(x, 1, seq)
	require.NoError(t, err)
	require.Equal(t, before[:last], y[:last])
	require.NotEqual(t, before[last:], y[last:])
}

func TestMLPGradient(t *testing.T) {
	const rows = 5
	m := newMLP("", tiny, new(inputs), new(scratch))
	linears := []*Linear{m.gate, m.up, m.down}
	for i, l := range linears {
		copy(l.Weight.Value, randoms(uint64(i), len(l.Weight.Value)))
	}
	x, dy := randoms(5, rows*tiny.Dim), randoms(6, rows*tiny.Dim)
	loss := func() float64 {
		y, err := m.forward(x, rows)
		if err != nil {
			panic(err)
		}
		return dot64(y, dy)
	}
	loss()
	dx, err := m.backward(dy)
	require.NoError(t, err)
	requireGradient(t, "x", append([]float32{}, dx...), x, loss)
	for _, l := range linears {
		requireGradient(t, l.Weight.Name, l.Weight.Grad, l.Weight.Value, loss)
	}
}

func TestHeadGradient(t *testing.T) {
	targets := []int32{3, 0, 10, 3}
	rows := len(targets)
	w := NewParam("head", tiny.Vocab, tiny.Dim)
	copy(w.Value, randoms(1, len(w.Value)))
	h := &outputHead{dense: newDense(w, 0, new(scratch))}
	x := randoms(2, rows*tiny.Dim)
	loss := func() float64 {
		_, err := h.forward(x, rows)
		require.NoError(t, err)
		h.loss(targets)
		return h.totalLoss() / float64(rows)
	}
	loss()
	dx, err := h.backward(1)
	require.NoError(t, err)
	requireGradient(t, "x", append([]float32{}, dx...), x, loss)
	requireGradient(t, "weight", w.Grad, w.Value, loss)
}

// TestLossOfKnownLogits has the weight be the identity, so that x is the logits.
func TestLossOfKnownLogits(t *testing.T) {
	w := NewParam("head", 2, 2)
	copy(w.Value, []float32{1, 0, 0, 1})
	h := &outputHead{dense: newDense(w, 0, new(scratch))}
	_, err := h.forward([]float32{0, 0, 200, 0, 0, 1}, 3)
	require.NoError(t, err)
	loss := h.loss([]int32{0, 1, 1})
	want := (math.Ln2 + 200 + math.Log1p(math.Exp(-1))) / 3
	require.InDelta(t, want, loss, 1e-5)
}

func TestLinearRefusesWrongLengths(t *testing.T) {
	l := newLinear("w", 3, 2, Config{}, new(scratch))
	require.ErrorContains(t, l.Forward(make([]float32, 6), make([]float32, 5), 2), "w, [3, 2]")
	require.NoError(t, l.Forward(make([]float32, 6), make([]float32, 4), 2))
	require.ErrorContains(t, l.Backward(make([]float32, 4), make([]float32, 5)), "w, [3, 2]")
}
