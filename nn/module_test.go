package nn

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var tiny = Config{Vocab: 11, Dim: 8, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 12, Context: 6}.withDefaults()

func TestRMSNormGradient(t *testing.T) {
	const rows = 5
	n, err := NewRMSNorm("norm", tiny.Dim, 0, Options{})
	require.NoError(t, err)
	copy(n.Gain.Value, randoms(1, tiny.Dim))
	x, dy := randoms(2, rows*tiny.Dim), randoms(3, rows*tiny.Dim)
	y, dx := make([]float32, len(x)), make([]float32, len(x))
	loss := func() float64 {
		must(n.Forward(context.Background(), y, x))
		return dot64(y, dy)
	}
	loss()
	require.NoError(t, n.Backward(t.Context(), dx, dy))
	requireGradient(t, "x", dx, x, loss)
	requireGradient(t, "gain", n.Gain.Grad, n.Gain.Value, loss)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func TestRotaryGradient(t *testing.T) {
	const rows, heads, seq, headDim = 6, 2, 3, 4
	r, err := NewRotary(headDim, seq, 0)
	require.NoError(t, err)
	x, dy := randoms(1, rows*heads*headDim), randoms(2, rows*heads*headDim)
	loss := func() float64 {
		y := append([]float32{}, x...)
		must(r.Rotate(y, heads, seq, 0))
		return dot64(y, dy)
	}
	dx := append([]float32{}, dy...)
	require.NoError(t, r.RotateBack(dx, heads, seq, 0))
	requireGradient(t, "x", dx, x, loss)
}

// TestRotaryAngles checks the second position against angles computed by package
// math: pair i turns by theta**(-2i/headDim).
func TestRotaryAngles(t *testing.T) {
	x := []float32{1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0}
	r, err := NewRotary(8, 2, 1e4)
	require.NoError(t, err)
	require.NoError(t, r.Rotate(x, 1, 2, 0))
	require.Equal(t, []float32{1, 0, 1, 0, 1, 0, 1, 0}, x[:8])
	for i := range 4 {
		angle := math.Pow(1e4, -float64(i)/4)
		require.InDelta(t, math.Cos(angle), x[8+2*i], 1e-7)
		require.InDelta(t, math.Sin(angle), x[8+2*i+1], 1e-7)
	}
}

// TestScaledRotary compares angles with those of published configurations: Llama 3.1's,
// by wavelengths as the model's authors have it, and linear ones.
func TestScaledRotary(t *testing.T) {
	const headDim, theta, position = 128, 5e5, 3
	kept, divided, between := 0, 0, 0
	llama3 := func(f float64) float64 {
		wavelength, smooth := 2*math.Pi/f, 0.0
		switch {
		case wavelength < 8192./4:
			kept++
			return f
		case wavelength > 8192./1:
			divided++
			return f / 8
		default:
			between++
			smooth = (8192/wavelength - 1) / (4 - 1)
			return (1-smooth)*f/8 + smooth*f
		}
	}
	for _, c := range []struct {
		scaling RopeScaling
		want    func(float64) float64
	}{
		{RopeScaling{}, func(f float64) float64 { return f }},
		{RopeScaling{Factor: 4}, func(f float64) float64 { return f / 4 }},
		{RopeScaling{Factor: 8, Original: 8192, Low: 1, High: 4}, llama3},
	} {
		x := make([]float32, (position+1)*headDim)
		for i := range x {
			x[i] = float32(1 - i%2)
		}
		r, err := NewScaledRotary(headDim, position+1, theta, c.scaling)
		require.NoError(t, err)
		require.NoError(t, r.Rotate(x, 1, position+1, 0))
		for i := range headDim / 2 {
			angle := position * c.want(math.Pow(theta, -2*float64(i)/headDim))
			// Of small angles the sine tells more.
			require.InEpsilon(t, math.Sin(angle), x[position*headDim+2*i+1], 1e-6)
			require.InDelta(t, math.Cos(angle), x[position*headDim+2*i], 1e-7)
		}
	}
	require.Equal(t, []int{29, 6, 29}, []int{kept, between, divided})
}

// someAttention has random weights and grouped heads with rotary positions.
func someAttention(t *testing.T) *Attention {
	t.Helper()
	rotary, err := NewRotary(tiny.Dim/tiny.Heads, tiny.Context, 0)
	require.NoError(t, err)
	a, err := NewAttention("attention.", AttentionConfig{Dim: tiny.Dim, Heads: tiny.Heads, KVHeads: tiny.KVHeads, Rotary: rotary}, Options{})
	require.NoError(t, err)
	for i, p := range a.Params() {
		copy(p.Value, randoms(uint64(i), len(p.Value)))
	}
	return a
}

func TestAttentionGradient(t *testing.T) {
	const batch, seq = 2, 5
	a := someAttention(t)
	x, dy := randoms(5, batch*seq*tiny.Dim), randoms(6, batch*seq*tiny.Dim)
	for i := range x {
		x[i] *= 0.3
	}
	y, dx := make([]float32, len(x)), make([]float32, len(x))
	loss := func() float64 {
		must(a.Forward(context.Background(), y, x, batch, seq))
		return dot64(y, dy)
	}
	loss()
	require.NoError(t, a.Backward(t.Context(), dx, dy))
	requireGradient(t, "x", dx, x, loss)
	for _, p := range a.Params() {
		requireGradient(t, p.Name, p.Grad, p.Value, loss)
	}
}

// TestAttentionIsCausal changes the last token: earlier outputs keep their bits.
func TestAttentionIsCausal(t *testing.T) {
	const seq = 5
	a := someAttention(t)
	x := randoms(5, seq*tiny.Dim)
	before, after := make([]float32, len(x)), make([]float32, len(x))
	require.NoError(t, a.Forward(t.Context(), before, x, 1, seq))
	last := (seq - 1) * tiny.Dim
	for i := last; i < len(x); i++ {
		x[i]++
	}
	require.NoError(t, a.Forward(t.Context(), after, x, 1, seq))
	require.Equal(t, before[:last], after[:last])
	require.NotEqual(t, before[last:], after[last:])
}

func TestMLPGradient(t *testing.T) {
	const rows = 5
	m, err := NewMLP("mlp.", tiny.Dim, tiny.Hidden, Options{})
	require.NoError(t, err)
	for i, p := range m.Params() {
		copy(p.Value, randoms(uint64(i), len(p.Value)))
	}
	x, dy := randoms(5, rows*tiny.Dim), randoms(6, rows*tiny.Dim)
	y, dx := make([]float32, len(x)), make([]float32, len(x))
	loss := func() float64 {
		must(m.Forward(context.Background(), y, x, rows))
		return dot64(y, dy)
	}
	loss()
	require.NoError(t, m.Backward(t.Context(), dx, dy))
	requireGradient(t, "x", dx, x, loss)
	for _, p := range m.Params() {
		requireGradient(t, p.Name, p.Grad, p.Value, loss)
	}
}

// TestBlockGradient also has the gradient of the input in the memory of that of the
// output.
func TestBlockGradient(t *testing.T) {
	const batch, seq = 2, 3
	b, err := NewBlock("block.", BlockConfig{AttentionConfig: AttentionConfig{Dim: 8, Heads: 2}, Hidden: 12}, Options{})
	require.NoError(t, err)
	for i, p := range b.Params() {
		for j, v := range randoms(uint64(i), len(p.Value)) {
			p.Value[j] += v / 2
		}
	}
	x, dy := randoms(7, batch*seq*8), randoms(8, batch*seq*8)
	y := make([]float32, len(x))
	loss := func() float64 {
		must(b.Forward(context.Background(), y, x, batch, seq))
		return dot64(y, dy)
	}
	loss()
	d := append([]float32{}, dy...)
	require.NoError(t, b.Backward(t.Context(), d, d))
	requireGradient(t, "x", d, x, loss)
	for _, p := range b.Params() {
		requireGradient(t, p.Name, p.Grad, p.Value, loss)
	}
}

// TestHeadGradient is that of an output head whose weight another layer owns, and of
// the loss after it. One target does not count.
func TestHeadGradient(t *testing.T) {
	targets := []int32{3, 0, IgnoreIndex, 10, 3}
	rows := len(targets)
	w := newParam("table", tiny.Vocab, tiny.Dim)
	copy(w.Value, randoms(1, len(w.Value)))
	head, err := NewLinearOf("head", w, Options{})
	require.NoError(t, err)
	var loss CrossEntropy
	x, logits := randoms(2, rows*tiny.Dim), make([]float32, rows*tiny.Vocab)
	run := func() float64 {
		must(head.Forward(context.Background(), logits, x, rows))
		_, err := loss.Forward(context.Background(), logits, targets, tiny.Vocab)
		must(err)
		return loss.total() / float64(loss.Count())
	}
	run()
	dLogits, dx := make([]float32, len(logits)), make([]float32, len(x))
	require.NoError(t, loss.Backward(t.Context(), dLogits, 1))
	require.NoError(t, head.Backward(t.Context(), dx, dLogits))
	requireGradient(t, "x", dx, x, run)
	requireGradient(t, "weight", w.Grad, w.Value, run)
}

func TestLossOfKnownLogits(t *testing.T) {
	var c CrossEntropy
	loss, err := c.Forward(t.Context(), []float32{0, 0, 200, 0, 0, 1}, []int32{0, 1, 1}, 2)
	require.NoError(t, err)
	want := (math.Ln2 + 200 + math.Log1p(math.Exp(-1))) / 3
	require.InDelta(t, want, loss, 1e-5)
}

// TestMaskedTargets: what does not count has no gradient, and the rest have those of a
// batch without it, to the bit.
func TestMaskedTargets(t *testing.T) {
	const vocab = 5
	logits := randoms(1, 6*vocab)
	masked := []int32{1, IgnoreIndex, 4, IgnoreIndex, IgnoreIndex, 0}
	var all, some CrossEntropy
	kept, keptTargets := []float32{}, []int32{}
	for i, target := range masked {
		if target != IgnoreIndex {
			kept, keptTargets = append(kept, logits[i*vocab:(i+1)*vocab]...), append(keptTargets, target)
		}
	}
	want, err := some.Forward(t.Context(), kept, keptTargets, vocab)
	require.NoError(t, err)
	got, err := all.Forward(t.Context(), logits, masked, vocab)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, 3, all.Count())
	dSome, dAll := make([]float32, len(kept)), make([]float32, len(logits))
	require.NoError(t, some.Backward(t.Context(), dSome, 2))
	require.NoError(t, all.Backward(t.Context(), dAll, 2))
	for i, target := range masked {
		row := dAll[i*vocab : (i+1)*vocab]
		if target == IgnoreIndex {
			require.Equal(t, make([]float32, vocab), row)
			continue
		}
		require.Equal(t, dSome[:vocab], row)
		dSome = dSome[vocab:]
	}

	none := []int32{IgnoreIndex, IgnoreIndex}
	got, err = all.Forward(t.Context(), logits[:2*vocab], none, vocab)
	require.NoError(t, err)
	require.Zero(t, got)
	dAll = randoms(2, 2*vocab)
	require.NoError(t, all.Backward(t.Context(), dAll, 1))
	require.Equal(t, make([]float32, 2*vocab), dAll)
}

func TestLinearRefusesWrongLengths(t *testing.T) {
	l, err := NewLinear("w", 3, 2, Options{})
	require.NoError(t, err)
	require.ErrorContains(t, l.Forward(t.Context(), make([]float32, 6), make([]float32, 5), 2), "w, [3, 2]")
	require.NoError(t, l.Forward(t.Context(), make([]float32, 6), make([]float32, 4), 2))
	require.ErrorContains(t, l.Backward(t.Context(), make([]float32, 4), make([]float32, 5)), "w, [3, 2]")
}

// TestRotateFrom rotates the rows of a sequence in parts.
func TestRotateFrom(t *testing.T) {
	const heads, dim, seq = 2, 6, 9
	r, err := NewRotary(dim, seq, 0)
	require.NoError(t, err)
	whole := randoms(1, seq*heads*dim)
	parts := slices.Clone(whole)
	require.NoError(t, r.Rotate(whole, heads, seq, 0))
	for first, end := range map[int]int{0: 4, 4: 5, 5: 9, 9: 9} {
		require.NoError(t, r.RotateFrom(parts[first*heads*dim:end*heads*dim], heads, first, 0, 1))
	}
	require.Equal(t, whole, parts)
	require.ErrorContains(t, r.RotateFrom(whole[:2*heads*dim], heads, 8, 0, 0), "2 rows from position 8 on: there are positions for 9")
}
