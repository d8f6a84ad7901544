package flash

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProbes: exact attention gives the answers that probes have.
func TestProbes(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 12 {
		p := randomProblem(r)
		probes, err := Probes(p, r.Uint64())
		require.NoError(t, err)
		require.Len(t, probes, 5)
		for _, probe := range probes {
			require.NoError(t, probe.Problem.Check(), probe.Name)
			got, err := Exact[float64](t.Context(), probe.Problem, Options{})
			require.NoError(t, err)
			want, scale := probe.Out, 1.0
			if probe.Base != nil {
				base, err := Exact[float64](t.Context(), probe.Base, Options{})
				require.NoError(t, err)
				want = base.Out
				for i, lse := range base.LSE {
					require.InDelta(t, lse+probe.LSE, got.LSE[i], 1e-12*max(1, math.Abs(lse)), probe.Name)
				}
			}
			for _, x := range want {
				scale = max(scale, math.Abs(x))
			}
			require.Len(t, got.Out, len(want))
			for i := range want {
				require.InDelta(t, want[i], got.Out[i], 1e-12*scale, "%s %d", probe.Name, i)
			}
		}
	}
}
