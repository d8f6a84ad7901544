package flash

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// inside returns the largest error in units of its bound, the norm of the errors in units
// of that of the bounds, and relative to what is wanted.
func inside(got []float32, want, bound []float64) (worst, norm, relative float64) {
	var errs, bounds, wants float64
	for i, x := range got {
		if float64(x) == want[i] {
			continue
		}
		off := math.Abs(float64(x) - want[i])
		worst = max(worst, off/bound[i])
		errs += off * off
		bounds += bound[i] * bound[i]
		wants += want[i] * want[i]
	}
	if errs == 0 {
		return worst, 1, 0
	}
	return worst, math.Sqrt(errs / bounds), math.Sqrt(errs / wants)
}

// requireInside fails if an error is beyond its bound, or where casts of P, all but exact
// elsewhere, make errors that the bounds are far too wide for.
func requireInside(t *testing.T, got, lse []float32, out, sums []float64, l *Limits, saturates bool, what string) {
	t.Helper()
	worst, norm, relative := inside(got, out, l.Out)
	require.LessOrEqual(t, worst, 1.0, what)
	if relative > 2e-3 && !saturates { // the most that may be lost is far from what is
		require.Greater(t, norm, 0.02, "%s: %v of all", what, relative)
	}
	worst, norm, _ = inside(lse, sums, l.LSE)
	require.LessOrEqual(t, worst, 1.0, "%s: log-sum-exps", what)
	require.Greater(t, norm, 0.002, "%s: log-sum-exps", what)
}

func TestBoundHoldsForVectors(t *testing.T) {
	file, cases, variants := golden(t)
	for _, c := range cases {
		p := c.problem(t, file)
		out := elements[float64](t, file, c.name+".exact.out")
		lse := elements[float64](t, file, c.name+".exact.lse")
		for _, v := range c.Variants {
			k := variants[string(v)].kernel(c.P)
			l, err := Bound(context.Background(), p, k.Claim(), Options{})
			require.NoError(t, err)
			name := c.flash() + "." + string(v)
			requireInside(t, elements[float32](t, file, name+".out"), elements[float32](t, file, name+".lse"), out, lse, l,
				k.Offset+k.Threshold > 8.8, name)
		}
	}
}
