package comparison

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDifference: what is said of the gap holds in each of the last steps, and of no others.
func TestDifference(t *testing.T) {
	const n = 8 // of the last tenth
	of := func(steps int, gap func(fromEnd int) float64) *Result {
		r := &Result{Options: options(steps)}
		for i := range steps {
			p := Point{Step: i}
			p.FP32.Loss = 2
			p.FP8.Loss = 2 + gap(steps-1-i)
			r.Points = append(r.Points, p)
		}
		r.FP32 = outcome(r.Points, 0, func(p Point) Figures { return p.FP32 })
		r.FP8 = outcome(r.Points, 0, func(p Point) Figures { return p.FP8 })
		return r
	}
	in := func(last, before float64) func(int) float64 {
		return func(fromEnd int) float64 {
			if fromEnd < n {
				return last
			}
			return before
		}
	}
	for _, c := range []struct {
		r       *Result
		verdict string
		says    string
	}{
		{of(80, in(0.02, -1)), "higher", "The loss in FP8 is higher than in FP32: in the last 8 steps +1.000 % on average, and in each of them."},
		{of(80, in(-0.02, 1)), "lower", "The loss in FP8 is lower than in FP32: in the last 8 steps -1.000 % on average, and in each of them."},
		{of(80, in(0, 1)), "the same", "The loss in FP8 is that of FP32 in each of the last 8 steps."},
		{of(80, func(fromEnd int) float64 { return float64(min(fromEnd, 1)) * 0.02 }), "undecided", "in the last 8 steps it is +0.875 % on average, but higher in 7 of them and lower in 0."},
		{of(70, in(0.02, -1)), "undecided", "the last tenth is 7 steps, too few for a verdict, which needs 8: runs of 71 steps or more have them. It is +1.000 % on average."},
		{of(1, in(0, 0)), "undecided", "the last tenth is 1 step, too few for a verdict, which needs 8: runs of 71 steps or more have them."},
		{of(71, in(0.02, -1)), "higher", "in the last 8 steps +1.000 % on average"}, // so they do
		{of(80, in(math.NaN(), 0)), "undecided", "Undecided: in step 72 a loss is not finite."},
		{of(80, in(math.Inf(1), 0)), "undecided", "Undecided: in step 72 a loss is not finite."},
		// Steps of 160, in pairs: one far up and one a little down, and the other way round in the last.
		{of(160, func(fromEnd int) float64 { return []float64{-0.02, 0.06}[fromEnd%2] }), "higher", "in the last 16 steps +1.000 % on average, and in each of 8 parts of them."},
		{of(160, func(fromEnd int) float64 {
			if fromEnd < 2 {
				return -0.01
			}
			return 0.02
		}), "undecided", "of 8 parts of them higher in 7 and lower in 1."},
		{of(160, func(fromEnd int) float64 { return []float64{-0.02, 0.02}[fromEnd%2] }), "undecided", "of 8 parts of them higher in 0 and lower in 0."},
	} {
		d := c.r.Difference()
		require.Equal(t, c.verdict, d.Verdict)
		require.Contains(t, d.Summary, c.says)
		require.NotContains(t, d.Summary, "neither has seen")
		require.Equal(t, len(c.r.Points) <= 70, strings.Contains(d.Summary, "too few"))
	}
	r := of(80, in(0.02, -1))
	r.Points[39].FP32.HeldOut, r.Points[39].FP8.HeldOut = 4, 5
	require.Contains(t, r.Difference().Summary, "On text that neither has seen it is +25.000 % after step 39.")
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		r.Points[39].FP8.HeldOut = bad
		says := r.Difference().Summary
		require.Contains(t, says, "On text that neither has seen a loss after step 39 is not finite.")
		require.NotRegexp(t, `NaN|Inf`, says)
	}
}
