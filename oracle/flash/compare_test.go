package flash

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/oracle"
)

func TestCompare(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	s := attention.Sizes{Heads: 2, KVHeads: 1, Queries: 2, ValueDim: 2}
	want := &Result[float64]{Out: []float64{1, 2, 0, 0, 3, nan, 4, 5}, LSE: []float64{1, -inf, 2, 3}}
	l := &Limits{Out: []float64{.5, .5, 0, 0, .5, 0, .5, inf}, LSE: []float64{.1, 0, .1, .1}}
	same := Got{Out: []float32{1, 2, 0, 0, 3, float32(nan), 4, 5},
		LSE: []float32{1, float32(-inf), 2, 3}}
	r := Compare(same, want, l, s)
	require.True(t, r.OK())
	require.Nil(t, r.Worst)
	require.Zero(t, r.MaxLSE)

	got := Got{Out: []float32{1.5, 2, 0, 0, 3.75, float32(nan), 4, 99},
		LSE: []float32{1, float32(-inf), 2.5, 3}}
	r = Compare(got, want, l, s)
	require.Equal(t, []int{8, 1, 1, 1}, []int{r.Elements, r.Outside, r.LSEOutside, r.Rows})
	require.Equal(t, ElementError{Head: 1, Query: 0, Column: 0, Got: 3.75, Want: 3, Bound: .5, Ratio: 1.5},
		*r.Worst)
	require.Equal(t, -1, r.WorstLSE.Column)
	require.InDelta(t, 5, float64(r.WorstLSE.Ratio), 1e-9)
	require.InDelta(t, .5, float64(r.MaxLSE), 1e-9)
	require.Empty(t, r.Heads[0].Rows)
	require.Equal(t, []int{0}, r.Heads[1].Rows)
	require.InDelta(t, math.Sqrt(.25/5), float64(r.Heads[0].RelL2), 1e-12)
	require.Contains(t, r.String(),
		"1 of 8 elements and 1 log-sum-exps are outside of their bounds, in 1 rows")
	require.Contains(t, r.String(),
		"worst: head 1, query 0, column 0: 3.75 for 3, 1.5 times the bound 0.5")

	got.Out[2], got.Out[5] = float32(nan), 1
	r = Compare(got, want, l, s)
	require.Equal(t, 3, r.Outside)
	require.Equal(t, 2, r.NonFinite)
	require.Equal(t, oracle.Number(inf), r.Worst.Ratio)
	require.Panics(t, func() { Compare(Got{Out: got.Out[1:]}, want, l, s) })
}

// TestUnbounded counts what differs and has no bound, of elements and log-sum-exps, and says
// of it neither that it is within nor that it is outside.
func TestUnbounded(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	s := attention.Sizes{Heads: 1, KVHeads: 1, Queries: 2, ValueDim: 2}
	want := &Result[float64]{Out: []float64{1, 2, nan, 4}, LSE: []float64{1, 2}}
	l := &Limits{Out: []float64{inf, inf, inf, .5}, LSE: []float64{inf, inf}}
	for _, test := range []struct {
		out, lse  []float32
		unbounded int
	}{
		{[]float32{1, 2, float32(nan), 4}, []float32{1, 2}, 0},
		{[]float32{1, 2, float32(nan), 4.25}, nil, 0},
		{[]float32{1, 3, float32(nan), 4}, []float32{1, 2}, 1},
		{[]float32{float32(inf), float32(nan), 3, 4}, []float32{1, 2}, 3},
		{[]float32{1, 2, float32(nan), 4}, []float32{float32(nan), 3}, 2},
	} {
		r := Compare(Got{Out: test.out, LSE: test.lse}, want, l, s)
		require.True(t, r.OK())
		require.Equal(t, test.unbounded, r.Unbounded, test)
		require.Equal(t, test.unbounded == 0, strings.Contains(r.String(), "all 4 elements are within their bounds"), r.String())
		require.Equal(t, test.unbounded > 0, strings.Contains(r.String(), "differ and have no bound"), r.String())
	}
}

// TestWide counts elements that their bounds allow to be as wrong as the result is large.
func TestWide(t *testing.T) {
	s := attention.Sizes{Heads: 1, KVHeads: 1, Queries: 1, ValueDim: 2}
	want := &Result[float64]{Out: []float64{3, 4}, LSE: []float64{1}}
	for _, test := range []struct {
		out         []float32
		bound       float64
		outside, of int
	}{
		{[]float32{0, 0}, 4, 0, 2}, {[]float32{0, 0}, 3.5, 1, 0}, {[]float32{6, 8}, 4, 0, 2}, {[]float32{0, 0.5}, 4, 0, 0}, {[]float32{3, 4}, 4, 0, 0},
	} {
		r := Compare(Got{Out: test.out}, want, &Limits{Out: []float64{test.bound, test.bound}, LSE: []float64{1}}, s)
		require.Equal(t, []int{test.outside, test.of}, []int{r.Outside, r.Wide}, test)
	}
}
