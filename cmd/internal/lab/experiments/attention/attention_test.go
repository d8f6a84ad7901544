package attention

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/labtest"
)

func TestAttention(t *testing.T) {
	r := labtest.Run(t, Experiment, labtest.Short())
	labtest.Judged(t, r, 4, 17)
	require.Len(t, labtest.Table(t, r, "spread").Rows, 5*4, "spreads, lifts")
	require.Len(t, labtest.Table(t, r, "vanishing").Rows, 2*8, "S, deltas")
	require.Len(t, labtest.Table(t, r, "length").Rows, 2*2*5, "values, lengths, adders")
	require.Len(t, labtest.Table(t, r, "scales").Rows, 5*3, "operands, granularities")
	for _, row := range labtest.Table(t, r, "published").Rows {
		require.InDelta(t, row[3].(float64)/row[2].(float64), row[4], 1e-12)
		require.Equal(t, math.Abs(row[4].(float64)-1) > 0.1, row[5] != "", "an explanation where it differs: %v", row)
	}
}

// TestDeclared: what is judged is what DECLARATION.md says.
func TestDeclared(t *testing.T) {
	said, err := os.ReadFile("DECLARATION.md")
	require.NoError(t, err)
	goals := madeUp(true).report().Goals
	require.Len(t, goals, 1+strings.Count(string(said), "\n   - "), "half of P is one line there, for both S")
	for i, want := range []string{
		"within 10 %", "within 10 %", "within 25 %", "1.2", "within 10 %", "at most 0.1", "5.93 within 10 %", "11.48 within 10 %", "3 to 10", "below 0.01 %",
		"at least 10", "1.5", "below -5 %", "0.024 within 10 %", "0.0091 within 15 %", "at least 2", "at most 0.15", "within 10 %", "0.67", "at most 0.5", "above 50 %",
	} {
		require.Equal(t, want, goals[i].Want, goals[i].What)
	}
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
