package outliers

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/labtest"
)

// ownOutliers is the short version with one worker.
var ownOutliers = sync.OnceValues(func() (*study, error) {
	o := labtest.Short()
	o.Workers = 1
	return doStudy(context.Background(), o, new(lab.Steps))
})

func ownStudy(t *testing.T) *study {
	t.Helper()
	s, err := ownOutliers()
	require.NoError(t, err)
	return s
}

func TestOutliers(t *testing.T) {
	s := ownStudy(t)
	p := s.plan
	require.Len(t, s.seeds, p.seeds)
	for i, f := range s.seeds {
		require.EqualValues(t, 1+i, f.seed)
		for _, all := range [][]alignment{f.decayed, f.free} {
			require.Len(t, all, (looks+1)*p.layers)
			require.Equal(t, p.base, all[len(all)-1].step)
			require.InDelta(t, cosineAtRandom(p.dim), all[0].cosine, 0.04, "weights of the beginning are random")
		}
		require.Equal(t, f.decayed[0], f.free[0], "both begin alike")
		require.NotEqual(t, last(f.decayed, 1), last(f.free, 1))
		for _, c := range append([]course{f.calm, f.growing}, f.runs...) {
			require.Len(t, c.losses, 2*p.window)
			require.InEpsilon(t, f.calm.losses[0], c.losses[0], 0.02, "all begin alike: %s", c.name)
		}
		for step := range p.window {
			require.Equal(t, f.calm.losses[step], f.growing.losses[step], "both settle alike")
			require.Equal(t, f.calm.amax[step], f.growing.amax[step])
		}
		require.NotEqual(t, f.calm.losses[p.window+1], f.growing.losses[p.window+1])
		require.Len(t, f.growing.arms, p.window/p.every)
		require.Len(t, f.growing.heldOut, p.window/p.every)
		require.Len(t, f.growing.under, len(lossArms()))
		require.Empty(t, f.calm.under)
		for look, found := range f.growing.arms {
			for i, a := range arms() {
				require.Positive(t, found[i].output, a.name)
				require.Less(t, found[i].output, 1.0, a.name)
				if a.timing == justInTime {
					require.Zero(t, found[i].saturated, a.name)
					require.InDelta(t, 1, found[i].reach, 1e-5, a.name)
				}
			}
			for i, a := range lossArms() {
				require.InEpsilon(t, f.growing.heldOut[look], f.growing.under[i][look], 0.1, a.name)
				require.NotEqual(t, f.growing.heldOut[look], f.growing.under[i][look], a.name)
			}
		}
	}
	require.NotEqual(t, s.seeds[0].growing.losses, s.seeds[1].growing.losses)
}

func TestOutliersRun(t *testing.T) {
	labtest.Slow(t)
	labtest.Judged(t, labtest.Run(t, Experiment, labtest.Short()), 0, len(declared().Names()))
}

// TestSamplesByHand: what the figures of a seed come to.
func TestSamplesByHand(t *testing.T) {
	p := plan{layers: 2, window: 2}
	under := make([][]float64, len(lossArms()))
	under[lossIndex(plainEach)] = []float64{2.2, 4.4}
	under[lossIndex(plainLate)] = []float64{3, 3}
	under[lossIndex(channelLate)] = []float64{3, 6}
	step := func(late, now float64) []fidelity {
		all := make([]fidelity, len(arms()))
		all[armIndex(plainLate)] = fidelity{output: late, saturated: late / 10}
		all[armIndex(plainNow)] = fidelity{output: now}
		return all
	}
	s := &study{plan: p, seeds: []seedFigures{{
		free:    []alignment{{cosineTop: 9}, {}, {cosineTop: 0.1, amax: 8, rms: 1}, {cosineTop: 0.3, amax: 8, rms: 1}},
		decayed: []alignment{{}, {}, {cosineTop: 0.4, amax: 8, rms: 1}, {cosineTop: 0.8, amax: 8, rms: 0.25}},
		growing: course{
			heldOut: []float64{2, 4}, under: under,
			amax: [][]float64{{1, 9}, {2, 16}, {4, 3}, {2, 8}},
			arms: [][]fidelity{step(0.3, 0.1), step(0.5, 0.1)},
		},
		runs: []course{{name: plainLate, heldOut: []float64{3, 9}}},
	}}}
	require.InDelta(t, 0.4, s.byDecay(alignment.top)[0], 1e-12)
	require.InDelta(t, 1, s.byDecay(alignment.logOutlier)[0], 1e-12)
	require.InDelta(t, 1, s.growth(growingOf)[0], 1e-12, "4 over 2, of the first layer")
	require.InDelta(t, 2.0437, s.ratio(growingOf, plainLate, plainNow)[0], 1e-4, "sqrt(0.17) over 0.1")
	require.InDelta(t, 0.04, s.seeds[0].growing.mean(plainLate, func(f fidelity) float64 { return f.saturated }), 1e-12)
	require.InDelta(t, 10, s.gaps(plainEach)[0], 1e-9)
	require.InDelta(t, 0, s.gaps(plainLate)[0], 1e-9)
	require.InDelta(t, 50, s.gaps(channelLate)[0], 1e-9)
	require.InDelta(t, 0.2, s.atEnd(freeOf, alignment.top)[0], 1e-12)
	require.InDelta(t, 100, s.trainedGaps(plainLate)[0], 1e-9)
}
