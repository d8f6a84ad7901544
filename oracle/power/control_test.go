package power

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestControls demands that controls are products with bias and old C, within the bound.
func TestControls(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 0))
	a, b := normalPair(9, 11, 200, tensor.Block{Rows: 1, Cols: 32}, 5, 6)
	bias, old, exact := make([]float32, 11), make([]float32, 99), make([]float32, 99)
	for j := range bias {
		bias[j] = float32(100 * r.NormFloat64())
	}
	for i := range old {
		old[i] = float32(100 * r.NormFloat64())
	}
	copy(exact, old)
	options := oracle.Options{Bias: bias, Accumulate: true}
	require.NoError(t, oracle.Exact(t.Context(), exact, a, b, options))
	for _, dequantized := range []bool{false, true} {
		o := Options{Rate: defaultRate, Bias: bias, Accumulation: oracle.Accumulation{Dequantized: dequantized}}
		p, err := newPopulation(t.Context(), old, a, b, &o)
		require.NoError(t, err)
		bound := make([]float64, 99)
		require.NoError(t, oracle.Bound(t.Context(), bound, old, a, b, o.Accumulation, options))
		for i, control := range controls[float32](dequantized) {
			c, err := control(t.Context(), p, old, &o)
			require.NoError(t, err)
			if dequantized && i == 0 {
				continue // octavo's scales sums
			}
			for at, x := range c {
				require.InDelta(t, exact[at], x, bound[at], "control %d, element %d", i, at)
			}
		}
	}
}

// TestControl demands that twice the most that a control shows is taken off each score,
// and that a control which is suspicious itself voids a test of very many statistics.
func TestControl(t *testing.T) {
	scoresOf := func(few []float64, one float64) *scores {
		return &scores{p: &population{}, tests: []family{
			{name: "few", n: 3, lambda: few, chance: -1},
			{name: "many", n: 1000, lambda: []float64{one}, chance: -1, many: true},
			{name: "again", n: 1000, lambda: []float64{one}, chance: -1, many: true, again: func([]float64) float64 { return 1.5 }},
		}}
	}
	s := scoresOf([]float64{20, 9, 3}, 20)
	s.control(scoresOf([]float64{1, 4, 2}, 5.3))
	s.control(scoresOf([]float64{3, 2, 2.5}, 5.3))
	require.Equal(t, []float64{14, 1, 0}, s.tests[0].lambda)
	require.Equal(t, []float64{20}, s.tests[1].lambda)
	require.Equal(t, []float64{17}, s.tests[2].lambda)
	for i, x := range s.result(defaultRate).Tests {
		require.False(t, x.Void, x.Name)
		require.True(t, x.Alarm, x.Name)
		require.Equal(t, s.tests[i].lambda[0], float64(x.Score))
	}

	// 2·1000·exp(-5.4²/2) is just below 1 in 1000; a later control takes nothing back.
	s = scoresOf([]float64{20, 3, 3}, 20)
	s.control(scoresOf([]float64{8, 1, 1}, 5.4))
	s.control(scoresOf([]float64{0, 0, 0}, 0))
	r := s.result(defaultRate)
	require.False(t, r.Alarm)
	for i, x := range r.Tests {
		require.Equal(t, i > 0, x.Void, x.Name)
		require.False(t, x.Alarm, x.Name)
	}
	require.Equal(t, 1., float64(r.Tests[1].P))
}

// TestTestsShareTheRate demands that P and the limits are of all eight tests together.
func TestTestsShareTheRate(t *testing.T) {
	for _, test := range []struct {
		lambda, rate float64
		alarm        bool
	}{{6, 7e-7, false}, {6, 7.4e-7, true}, {1, 0.5, false}} {
		s := &scores{p: &population{}, tests: []family{{n: 3, lambda: []float64{0, test.lambda, 0}, chance: -1}, {n: 1, lambda: []float64{0}, chance: -1}}}
		r := s.result(test.rate)
		require.InDelta(t, min(1, 8*2*3*math.Exp(-test.lambda*test.lambda/2)), float64(r.P), 1e-15)
		require.Equal(t, test.alarm, r.Alarm, test)
		require.Equal(t, test.alarm, r.Tests[0].Alarm, test)
		require.Equal(t, test.alarm, r.Tests[0].Score >= r.Tests[0].Limit, test)
		require.Equal(t, test.alarm, float64(r.P) <= test.rate)
	}
}

// TestAllOfC demands that a part which is the whole is named so.
func TestAllOfC(t *testing.T) {
	a, b := normalPair(10, 12, 64, tensor.Block{}, 5, 6)
	p, err := newPopulation[float32](t.Context(), nil, a, b, &Options{Rate: defaultRate})
	require.NoError(t, err)
	parts := p.parts(make([]float64, 120))
	require.Equal(t, "a bias in the 1x12 at (9, 0)", parts.where(2*9))
	require.Equal(t, "a bias in all of C", parts.where(2*22))
}
