package nn

import (
	"context"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/swiglu"
)

// someBias returns a bias of random values.
func someBias(t *testing.T, n int) *Param {
	t.Helper()
	b, err := NewParam("bias", 1, n)
	require.NoError(t, err)
	copy(b.Value, randoms(77, n))
	return b
}

// TestBias adds a bias to products in FP32 and in FP8: the bits are those of one addition
// to each result without, and its gradient is the sum of rows.
func TestBias(t *testing.T) {
	const rows, in, out = 5, 9, 7
	inFP8 := DefaultFP8()
	for _, o := range []Options{{}, {FP8: &inFP8}} {
		x, dy := randoms(1, rows*in), randoms(2, rows*out)
		plain, err := NewLinear("w", out, in, o)
		require.NoError(t, err)
		copy(plain.Weight.Value, randoms(3, out*in))
		want := make([]float32, rows*out)
		require.NoError(t, plain.Forward(t.Context(), want, x, rows))
		l, err := NewLinearOf("w", plain.Weight, o)
		require.NoError(t, err)
		l.Bias = someBias(t, out)
		got, dx := make([]float32, rows*out), make([]float32, rows*in)
		require.NoError(t, l.Forward(t.Context(), got, x, rows))
		for i := range want {
			require.Equal(t, want[i]+l.Bias.Value[i%out], got[i])
		}
		require.NoError(t, l.Backward(t.Context(), dx, dy))
		for j, g := range l.Bias.Grad {
			sum := float32(0)
			for r := range rows {
				sum += dy[r*out+j]
			}
			require.Equal(t, sum, g)
		}
	}
}

// TestBiasOfGroup compares the products of several experts at once with one after another.
func TestBiasOfGroup(t *testing.T) {
	const in, out = 9, 7
	o := Options{FP8: new(FP8)}
	*o.FP8 = DefaultFP8()
	o, err := o.complete("Options")
	require.NoError(t, err)
	counts := []int{2, 3}
	x, dy := randoms(1, 5*in), randoms(2, 5*out)
	var results, gradients [][]float32
	for _, at := range []bool{true, false} {
		g := &linearGroup{shared: o.Shared, workers: 1}
		for range counts {
			l, err := NewLinear("w", out, in, o)
			require.NoError(t, err)
			copy(l.Weight.Value, randoms(3, out*in))
			l.Bias = someBias(t, out)
			g.layers = append(g.layers, l)
		}
		y, dx := make([]float32, 5*out), make([]float32, 5*in)
		if at {
			require.True(t, g.grouped())
			require.NoError(t, g.multiply(t.Context(), y, x, counts, nil))
			require.NoError(t, g.keep(t.Context(), x, counts, nil))
			require.NoError(t, g.backward(t.Context(), dx, dy, counts, nil))
		} else {
			first := 0
			for e, l := range g.layers {
				rows := counts[e]
				require.NoError(t, l.Forward(t.Context(), l.output(y, first, rows), l.input(x, first, rows), rows))
				require.NoError(t, l.Backward(t.Context(), l.input(dx, first, rows), l.output(dy, first, rows)))
				first += rows
			}
		}
		results = append(results, y)
		gradients = append(gradients, append(g.layers[0].Bias.Grad, g.layers[1].Bias.Grad...))
	}
	require.Equal(t, results[1], results[0])
	require.Equal(t, gradients[1], gradients[0])
	require.NotZero(t, gradients[0][0])
}

// TestBiasRefused: a bias of another length, and one that scales would divide.
func TestBiasRefused(t *testing.T) {
	l, err := NewLinear("w", 3, 2, Options{})
	require.NoError(t, err)
	l.Bias = someBias(t, 2)
	y := []float32{1, 1, 1}
	require.ErrorIs(t, l.Forward(t.Context(), y, []float32{1, 2}, 1), ErrInput)
	m, err := NewMLP("m.", 2, 3, Options{Smoothing: new(swiglu.Smoothing)})
	require.NoError(t, err)
	m.Down.Bias = someBias(t, 2)
	require.ErrorIs(t, m.Forward(t.Context(), y[:2], []float32{1, 2}, 1), ErrInput)
	require.Equal(t, []float32{1, 1, 1}, y)
}

func TestLayerNormGradient(t *testing.T) {
	const rows, dim = 5, 8
	n, err := NewLayerNorm("ln.weight", dim, 0, Options{})
	require.NoError(t, err)
	require.Equal(t, "ln.bias", n.Bias.Name)
	copy(n.Gain.Value, randoms(1, dim))
	copy(n.Bias.Value, randoms(4, dim))
	x, dy := randoms(2, rows*dim), randoms(3, rows*dim)
	y, dx := make([]float32, len(x)), make([]float32, len(x))
	loss := func() float64 {
		must(n.Forward(context.Background(), y, x))
		return dot64(y, dy)
	}
	loss()
	require.NoError(t, n.Backward(t.Context(), dx, dy))
	requireGradient(t, "x", dx, x, loss)
	requireGradient(t, "gain", n.Gain.Grad, n.Gain.Value, loss)
	requireGradient(t, "bias", n.Bias.Grad, n.Bias.Value, loss)
}

// TestLayerNormByDefinition compares with the paper's formula in float64, for values far
// from zero too.
func TestLayerNormByDefinition(t *testing.T) {
	const rows, dim, eps = 6, 33, 1e-3
	n, err := NewLayerNorm("ln.weight", dim, eps, Options{Workers: 3})
	require.NoError(t, err)
	copy(n.Gain.Value, randoms(1, dim))
	copy(n.Bias.Value, randoms(4, dim))
	x, y := randoms(2, rows*dim), make([]float32, rows*dim)
	for i := range x[dim:] {
		x[dim+i] += 100
	}
	require.NoError(t, n.Forward(t.Context(), y, x))
	for r := range rows {
		row, mean, variance := x[r*dim:][:dim], 0.0, 0.0
		for _, v := range row {
			mean += float64(v) / dim
		}
		for _, v := range row {
			variance += (float64(v) - mean) * (float64(v) - mean) / dim
		}
		for i, v := range row {
			want := (float64(v)-mean)/math.Sqrt(variance+eps)*float64(n.Gain.Value[i]) + float64(n.Bias.Value[i])
			require.InDelta(t, want, float64(y[r*dim+i]), 1e-4)
		}
	}
	require.ErrorIs(t, n.Forward(t.Context(), y, x[1:]), ErrInput)
	require.ErrorIs(t, n.Backward(t.Context(), y, x), ErrInput)
	_, err = NewLayerNorm("ln", 0, 0, Options{})
	require.ErrorIs(t, err, ErrConfig)
}

func TestPointwise(t *testing.T) {
	x := append(randoms(5, 60), 0, float32(math.Copysign(0, -1)), 50, -50)
	dy := randoms(6, len(x))
	// Of package math: Φ(x) = erfc(-x/√2)/2.
	normal := func(v float64) float64 { return math.Erfc(-v/math.Sqrt2) / 2 }
	for f, want := range map[Function]func(v float64) float64{
		ReLU: func(v float64) float64 { return math.Max(v, 0) },
		GELU: func(v float64) float64 { return v * normal(v) },
		GELUTanh: func(v float64) float64 {
			return v / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
		},
	} {
		p, err := NewPointwise("act", f, Options{Workers: 2})
		require.NoError(t, err)
		y, dx := make([]float32, len(x)), make([]float32, len(x))
		require.NoError(t, p.Forward(t.Context(), y, x, 4))
		const h = 1e-5
		require.NoError(t, p.Backward(t.Context(), dx, dy))
		for i, v := range x {
			v := float64(v)
			require.InDelta(t, want(v), float64(y[i]), 1e-6, "%v(%v)", f, v)
			if f != ReLU || v != 0 {
				require.InDelta(t, (want(v+h)-want(v-h))/(2*h)*float64(dy[i]), float64(dx[i]), 1e-6, "%v'(%v)", f, v)
			} else {
				require.Zero(t, dx[i])
			}
		}
		require.ErrorIs(t, p.Backward(t.Context(), dx, dy), ErrInput)
		require.ErrorIs(t, p.Forward(t.Context(), y, x, 5), ErrInput)
		require.ErrorIs(t, p.Forward(t.Context(), y[:1], x, 4), ErrInput)
		text, err := json.Marshal(f)
		require.NoError(t, err)
		var again Function
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, f, again)
	}
	nan := float32(math.NaN())
	p, err := NewPointwise("act", ReLU, Options{})
	require.NoError(t, err)
	y := make([]float32, 1)
	require.NoError(t, p.Forward(t.Context(), y, []float32{nan}, 1))
	require.True(t, math.IsNaN(float64(y[0])))
	_, err = NewPointwise("act", 9, Options{})
	require.ErrorIs(t, err, ErrConfig)
	_, err = NewPointwise("act", ReLU, Options{Workers: -1})
	require.ErrorIs(t, err, ErrConfig)
}
