package flash

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// line is one query and keys with the given scores, and values of one column.
func line(scores, v []float32, scaleV float32) *attention.Problem {
	codes := func(x []float32) []byte {
		b := make([]byte, len(x))
		for i := range x {
			b[i] = fp8.EncodeOne(x[i], fp8.E4M3, fp8.Policy{})
		}
		return b
	}
	n := len(scores)
	return &attention.Problem{
		Q: values(1, 1, 1, func(_, _, _ int) float32 { return 1 }),
		K: values(1, n, 1, func(_, j, _ int) float32 { return scores[j] }),
		V: attention.Operand{Codes: &tensor.Tensor{Format: fp8.E4M3, Shape: []int{1, n, 1},
			Codes: codes(v), Scales: []float32{scaleV}}},
		Scale: 1,
	}
}

// TestExactTies: outputs that lie between two numbers, or differ from such by so little
// that no arithmetic of fixed precision sees it.
func TestExactTies(t *testing.T) {
	// tie·scale is halfway between two float32, of which the larger is even.
	const tie, scale = 1.5, 1 + 0x1p-23
	down := math.Nextafter32(1.5, 2)
	up := math.Nextafter32(down, 2)
	require.Equal(t, tie*float64(scale), (float64(down)+float64(up))/2)
	require.Zero(t, math.Float32bits(up)%2)
	for _, test := range []struct {
		name   string
		scores []float32
		v      []float32
		want   float32
	}{
		{"one key", []float32{3}, []float32{tie}, up},
		{"equal values", []float32{3, 1, -7}, []float32{tie, tie, tie}, up},
		{"equal keys", []float32{3, 3}, []float32{1, 2}, up},
		{"less by e^-60", []float32{0, -60}, []float32{tie, 0}, down},
		{"more by e^-60", []float32{0, -60}, []float32{tie, 2}, up},
		{"less by e^-600", []float32{0, -600}, []float32{tie, 0}, down},
		{"more by e^-900", []float32{0, -900}, []float32{tie, 2}, up},
		{"less by e^-9000", []float32{0, -8992}, []float32{tie, 0}, down},
		{"balanced", []float32{0, -60, -60}, []float32{tie, 2, 1}, up},
		{"balanced but for less", []float32{0, -60, -60, -900}, []float32{tie, 2, 1, 1}, down},
		{"balanced but for the least", []float32{0, -60, -60, -900}, []float32{tie, 2, 1, 2}, up},
	} {
		p := line(test.scores, test.v, scale)
		got, err := Exact[float32](t.Context(), p, Options{})
		require.NoError(t, err)
		require.Equal(t, test.want, got.Out[0], test.name)
		for i := range test.v {
			test.v[i] = -test.v[i]
		}
		got, err = Exact[float32](t.Context(), line(test.scores, test.v, scale), Options{})
		require.NoError(t, err)
		require.Equal(t, -test.want, got.Out[0], test.name)
	}
}

func TestExactEdges(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	infinite := math.Inf(1)
	none := -infinite
	for _, test := range []struct {
		name          string
		scores, v     []float32
		sink          []float32
		out, top, lse float64
		sinkLSE       float64
	}{
		{"zero by cancellation", []float32{1, 1}, []float32{1, -1}, nil, 0, 1, 1 + math.Ln2, 0},
		{"values of zero", []float32{1, -900}, []float32{0, 0}, nil, 0, 1, 1, 0},
		{"negative underflow", []float32{0, -1e4}, []float32{0, -1}, nil, math.Copysign(0, -1), 0, 0, 0},
		{"huge scores", []float32{1e30, -1e30}, []float32{2, 3}, nil, 2, float64(bf(1e30)),
			float64(bf(1e30)), 0},
		{"a sink alone", []float32{-1e30}, []float32{2}, []float32{0}, 0, -float64(bf(1e30)),
			-float64(bf(1e30)), 0},
		{"a large sink", []float32{0, 0}, []float32{2, 2}, []float32{800}, 0, 0, math.Ln2, 800},
		{"a sink like the key", []float32{5}, []float32{2}, []float32{5}, 1, 5, 5, 5 + math.Ln2},
		{"a sink of -Inf", []float32{5}, []float32{2}, []float32{-inf}, 2, 5, 5, 5},
		{"NaN score", []float32{5, nan}, []float32{2, 2}, nil, math.NaN(), math.NaN(), math.NaN(), 0},
		{"score of +Inf", []float32{5, inf}, []float32{2, 2}, nil, math.NaN(), infinite, infinite, 0},
		{"score of -Inf", []float32{5, -inf}, []float32{2, 3}, nil, 2, 5, 5, 0},
		{"scores of -Inf", []float32{-inf, -inf}, []float32{2, 3}, nil, math.NaN(), none, none, 0},
		{"scores of -Inf and a sink", []float32{-inf, -inf}, []float32{2, 3}, []float32{1}, 0, none,
			none, 1},
		{"NaN value", []float32{5, 1}, []float32{2, nan}, nil, math.NaN(), 5, 5 +
			math.Log1p(math.Exp(-4)), 0},
		{"NaN value without weight", []float32{5, -inf}, []float32{2, nan}, nil, math.NaN(), 5, 5, 0},
	} {
		p := line(test.scores, test.v, 1)
		p.Sinks = test.sink
		got, err := Exact[float64](t.Context(), p, Options{})
		require.NoError(t, err, test.name)
		same64(t, test.name+": out", test.out, got.Out[0])
		same64(t, test.name+": max", test.top, got.Max[0])
		same64(t, test.name+": lse", test.lse, got.LSE[0])
		if test.sink != nil {
			same64(t, test.name+": lse with sink", test.sinkLSE, got.SinkLSE[0])
		}
	}
}

func same64(t *testing.T, what string, want, got float64) {
	t.Helper()
	if want != want {
		require.True(t, got != got, "%s: %v", what, got)
		return
	}
	require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%s: want %v, got %v", what, want,
		got)
}

func bf(x float32) float32 { return fp8.BFloat16FromFloat32(x).Float32() }

func TestExactRefuses(t *testing.T) {
	p := line([]float32{1}, []float32{1}, 1)
	_, err := Exact[float32](t.Context(), p, Options{Rows: []int{1}})
	require.ErrorIs(t, err, ErrRows)
	_, err = Exact[float32](t.Context(), p, Options{Rows: []int{0, 0}})
	require.ErrorIs(t, err, ErrRows)
	p.Scale = -1
	_, err = Exact[float32](t.Context(), p, Options{})
	require.ErrorIs(t, err, attention.ErrScales)
	for _, change := range []func(p *attention.Problem){
		func(p *attention.Problem) { p.Cap = 50 },
		func(p *attention.Problem) { p.K = attention.Operand{Float32: []float32{1}, Shape: p.K.Shape} },
	} {
		p := line([]float32{1}, []float32{1}, 1)
		change(p)
		_, err := Exact[float32](t.Context(), p, Options{})
		require.ErrorIs(t, err, ErrKernel)
		_, err = Bound(t.Context(), p, Octavo(attention.PBFloat16, 1).Numerics(), Options{})
		require.ErrorIs(t, err, ErrKernel)
		_, err = Predict(t.Context(), p, Octavo(attention.PBFloat16, 1), Options{})
		require.ErrorIs(t, err, ErrKernel)
		_, err = Inject(t.Context(), p, Octavo(attention.PBFloat16, 1), Fault{}, Options{})
		require.ErrorIs(t, err, ErrKernel)
		require.Empty(t, Faults(p, Octavo(attention.PBFloat16, 1)))
	}
}
