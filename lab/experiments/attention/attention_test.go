package attention

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
)

func TestAttention(t *testing.T) {
	r := labtest.Run(t, Experiment, labtest.Short())
	labtest.Judged(t, r, 0, 29)
	require.Len(t, labtest.Table(t, r, "spread").Rows, 5*4, "spreads, lifts")
	require.Len(t, labtest.Table(t, r, "vanishing").Rows, 2*8, "S, deltas")
	require.Len(t, labtest.Table(t, r, "length").Rows, 2*2*5, "values, lengths, adders")
	require.Len(t, labtest.Table(t, r, "scales").Rows, 5*3, "operands, granularities")
	for _, row := range labtest.Table(t, r, "published").Rows {
		require.InDelta(t, row[3].(float64)/row[2].(float64), row[4], 1e-12)
		require.Equal(t, math.Abs(row[4].(float64)-1) > 0.1, row[5] != "", "an explanation where it differs: %v", row)
	}
}

// TestAverage: figures are the means over draws, and outliers keep each.
func TestAverage(t *testing.T) {
	draw := func(x float64) *study {
		return &study{
			spreads: []spread{{of: 1, relative: x}, {of: 2, relative: 10 * x}}, flushes: []flush{{delta: 3, forward: x, ratio: 2 * x}},
			growths: []growth{{keys: 5, deviation: deviation{bias: x}}}, rotations: []rotation{{dim: 4, roots: []float64{x}}},
			smoothing: []smoothed{{bias: 7, smooth: x}}, scales: []scaled{{kind: "a", relative: x}},
		}
	}
	s := &study{draws: []*study{draw(1), draw(3)}}
	s.average()
	want := draw(2)
	want.draws, want.rotations = s.draws, []rotation{{dim: 4, roots: []float64{1, 3}}}
	require.Equal(t, want, s)
	require.Equal(t, draw(1), s.draws[0], "draws are as they were")
	require.Equal(t, []float64{10, 30}, s.by(func(d *study) float64 { return d.spreads[1].relative }))
}

// TestExact compares with the definition where it can be seen.
func TestExact(t *testing.T) {
	a := &operands{queries: 2, keys: 3, dim: 1, valueDim: 2, q: []float32{0, 1}, k: []float32{0, float32(math.Ln2), 5}, v: []float32{1, 2, 4, 8, 100, 200}}
	causal := attention.Mask{Causal: true}
	require.InDeltaSlice(t, []float64{2.5, 5}, a.exact(1, causal, 1)[:2], 1e-12, "equal scores: the mean of two")
	e5 := math.Exp(5)
	require.InDelta(t, (1+2*4+e5*100)/(1+2+e5), a.exact(1, causal, 1)[2], 1e-5)
	require.InDelta(t, 35, a.exact(0, attention.Mask{}, 1)[0], 1e-12)
}

// TestExpectedFlush: where sinks are far above, the maximum is that of four; half of P
// vanishes where it is 10 ln 2 on average.
func TestExpectedFlush(t *testing.T) {
	require.InDelta(t, 1, expectedFlush(14, 1), 1e-6)
	require.InDelta(t, 0, expectedFlush(4, 256), 1e-6)
	require.InDelta(t, 0.5, expectedFlush(10*math.Ln2-1.0294, 1), 0.01, "1.0294 is the mean of the largest of four")
	require.InDelta(t, expectedFlush(6, 1), expectedFlush(6+math.Log(256), 256), 1e-3, "a lift moves it")
}

// TestEnlarged: no query sees the enlarged token, and each sees another.
func TestEnlarged(t *testing.T) {
	for _, kind := range kinds() {
		a := random(4, 20, 2, 2, generator(1, forScales).NormFloat64)
		mask := enlarge(a, kind)
		for i := range 4 {
			lo, hi := mask.Range(i, 4, 20)
			require.Equal(t, 20, hi)
			require.Equal(t, kind == keyKind || kind == valueKind, lo > 0, kind)
		}
	}
}

func TestHalf(t *testing.T) {
	of := func(shares ...float64) (f []flush) {
		for i, s := range shares {
			f = append(f, flush{delta: float64(2 * i), forward: s})
		}
		return f
	}
	require.InDelta(t, 3, half(of(0, 0.25, 0.75)), 1e-12)
	require.True(t, math.IsNaN(half(of(0, 0.25))))
}

// TestCaching: figures of losses that are known.
func TestCaching(t *testing.T) {
	c := &caching{config: training.Llama(32, 2, 8)}
	require.Equal(t, []float64{1, 2, 3.5, 6.5, 4.5}, c.means([]float64{1, 2, 3, 4, 5, 6, 7, 8}), "positions 1, 2, 3 and 4, 5 to 8, all")
	for part, want := range [][2]int{{1, 1}, {2, 2}, {3, 4}, {5, 8}, {1, 8}} {
		first, last := c.between(part)
		require.Equal(t, want, [2]int{first, last})
	}
	of := func(bf16, e4m3 [][]float64) *cachedModel { return &cachedModel{losses: [][][]float64{bf16, e4m3}} }
	c.models = []*cachedModel{
		of([][]float64{{2, 0, 0, 1, 0}, {3, 0, 0, 1, 0}}, [][]float64{{2.1, 0, 0, 1.3, 0}, {3.3, 0, 0, 1.7, 0}}),
		of([][]float64{{4, 0, 0, 1, 0}, {5, 0, 0, 1, 0}}, [][]float64{{4.3, 0, 0, 1.5, 0}, {5.5, 0, 0, 1.9, 0}}),
	}
	mean, twice := c.cost(byToken, inBF16, 0)
	require.InDelta(t, 0.3, mean, 1e-12, "0.2 and 0.4, of two models each")
	require.InDelta(t, 0.2, twice, 1e-12, "two times the root of 0.02/2")
	mean, twice = summed(c.growths(byToken))
	require.InDelta(t, 0.3, mean, 1e-12, "0.6 less 0.3")
	require.InDelta(t, 0.2, twice, 1e-12, "0.4 less 0.2, 0.8 less 0.4")
	mean, _ = summed(c.gains())
	require.InDelta(t, 2.5, mean, 1e-12)
	most := c.most(byToken, 1) // of 0.4 and 0.8, with t of one degree of freedom, 12.706
	require.InDelta(t, 0.6, most.At, 1e-12)
	require.InDelta(t, 0.6+12.706*0.2, most.High, 1e-3)
	require.InDelta(t, 0, most.Low, 1e-12, "other ranges are alike, at 0")
}

func TestLosses(t *testing.T) {
	got := lossesOf([]float32{0, 0, 1000, 1000 - float32(math.Ln2)}, []int32{1, 0})
	require.InDeltaSlice(t, []float64{math.Ln2, math.Log(1.5)}, got, 1e-4)
}

// TestScalesSeen: the largest magnitude of each head, which scales make the format's.
func TestScalesSeen(t *testing.T) {
	a := newAmaxes(nn.Config{Layers: 2, KVHeads: 2})
	a.see(1, []float32{1, -2, 3, 4, -7, 0, 0, 1}, 4) // two tokens of two heads of two
	a.see(0, []float32{448, 0, 0, 0}, 4)
	require.Equal(t, amaxes{{448, 0}, {7, 4}}, a)
	require.Equal(t, []float32{1, 1e-6, 7. / 448, 4. / 448}, a.scales(1))
	require.Equal(t, []float32{2, 14. / 448}, a.layers().scales(2))
}
