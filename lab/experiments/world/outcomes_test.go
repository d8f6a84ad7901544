package world

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// madeUp is a study of two seeds whose figures are all the same, until change sets some.
func madeUp(change func(*sample)) *report.Report {
	s := &study{scope: scope{seeds: 2, sums: []int{2, measuredSequences, 256}, elements: 8, sliceSteps: 1, teamSteps: 4, heldOut: 1}}
	for range s.seeds {
		of := &sample{scope: s.scope, o: labtest.Short()}
		for _, k := range append([]routeKind{exactly}, routeKinds...) {
			of.routes = append(of.routes, &route{kind: k, output: 0.1, gradient: 0.1, loss: 2})
		}
		for _, operands := range []string{withMean, noise, measured} {
			for _, ranks := range of.scope.sums {
				for _, order := range sumOrders {
					for _, f := range sumFormats {
						of.sums = append(of.sums, &sum{operands: operands, ranks: ranks, order: order, format: f, err: collective.SumError{RMS: 0.1}})
					}
				}
			}
		}
		for _, k := range slicedKinds {
			for _, fixed := range []bool{true, false} {
				for _, ranks := range slicedRanks {
					of.slices = append(of.slices, &sliced{kind: k, fixed: fixed, ranks: ranks, elements: 100})
				}
			}
		}
		for _, k := range teamKinds {
			of.teams = append(of.teams, &team{kind: k, losses: []float64{9, 9, 9, 2}})
		}
		if change != nil {
			change(of)
		}
		s.samples = append(s.samples, of)
	}
	return s.report()
}

// TestGoalsTakeTheRightFigures changes one figure at a time: goals that it is part of take
// it, and no others.
func TestGoalsTakeTheRightFigures(t *testing.T) {
	found := func(r *report.Report) map[string]float64 {
		all := map[string]float64{}
		for _, g := range r.Goals {
			if g.Found != nil {
				all[g.Name] = float64(g.Found.Mean)
			}
		}
		return all
	}
	sum := func(operands string, ranks int, order collective.Order, f sumFormat, rms float64) func(*sample) {
		return func(of *sample) {
			for _, k := range of.sums {
				if k.operands == operands && k.ranks == ranks && k.order == order && k.format == f {
					k.err.RMS = rms
				}
			}
		}
	}
	before := found(madeUp(nil))
	require.Len(t, before, 28)
	for _, test := range []struct {
		change func(*sample)
		want   map[string]float64
	}{
		{func(of *sample) { of.routeOf(bothBF16).gradient = 0.2 }, map[string]float64{"dispatch-gradient": 0.5, "combine-cast": 0.5}},
		{func(of *sample) { of.routeOf(dispatchPow2).gradient = 0.2 }, map[string]float64{"dispatch-gradient": 2, "combine-gradient": 0.5}},
		{func(of *sample) { of.routeOf(combineFP8).output = 0.2 }, map[string]float64{"combine-output": 2, "combine-scales": 2}},
		{func(of *sample) { of.routeOf(dispatchPow2).output = 0.2 }, map[string]float64{"combine-output": 0.5}},
		{func(of *sample) { of.routeOf(plainDispatch).output = 0.2 }, map[string]float64{"plain-experts": 2}},
		{func(of *sample) { of.routeOf(bothBF16).loss = 4 }, map[string]float64{"dispatch-loss": -50, "combine-fp4-loss": -50}},
		{func(of *sample) { of.routeOf(combineFP8).loss = 4 }, map[string]float64{"combine-loss": 100}},
		{func(of *sample) { of.routeOf(combineFP4).output = 0.3 }, map[string]float64{"combine-fp4": 3}},
		{func(of *sample) { of.routeOf(combineCast).gradient = 0.3 }, map[string]float64{"combine-cast": 3}},
		{sum(withMean, 256, collective.OrderHalving, sumFP32, 0.5), map[string]float64{"sum-fp32": 50}},
		{sum(withMean, 256, collective.OrderTree, sumBF16, 0.5), map[string]float64{"sum-bf16-tree": 50}},
		{sum(noise, 256, collective.OrderScatter, sumE4M3, 0.5), map[string]float64{"sum-scatter": 5}},
		{sum(noise, 256, collective.OrderTree, sumE4M3, 0.5), map[string]float64{"sum-scatter": 0.2, "sum-mxfp8": 0.2}},
		{sum(noise, 256, collective.OrderTree, sumNVFP4, 0.5), map[string]float64{"sum-nvfp4": 50}},
		{sum(measured, measuredSequences, collective.OrderTree, sumE4M3, 0.5), map[string]float64{"sum-real": 5}},
		{sum(withMean, 256, collective.OrderRing, sumBF16, 0.5), map[string]float64{"sum-bf16-ring": 50}},
		{sum(withMean, 256, collective.OrderRing, sumE4M3, 0.5), map[string]float64{"sum-fp8-ring": 50}},
		{func(of *sample) { of.teamOf(gatherBF16).losses[3] = 4 }, map[string]float64{"gather-bf16": 100}},
		{func(of *sample) { of.teamOf(gatherFP8).losses[3] = 4 }, map[string]float64{"gather-fp8": 100}},
		{func(of *sample) { of.teamOf(gatherPow2).losses[3] = 4 }, map[string]float64{"gather-pow2": 100}},
		{func(of *sample) { of.teamOf(gatherNorms).losses[3] = 4 }, map[string]float64{"gather-norms": 100}},
		{func(of *sample) { of.teamOf(gatherFP4).losses[3] = 4 }, map[string]float64{"gather-fp4": 100}},
		{func(of *sample) { of.teamOf(amaxBehind).losses[3] = 4 }, map[string]float64{"amax-behind": 100}},
		{func(of *sample) { of.teamOf(amaxNever).losses[3] = 4 }, map[string]float64{"amax-never": 100}},
		{func(of *sample) { of.teamOf(sumLate).losses[3] = 4 }, map[string]float64{"sum-late": 100}},
		{func(of *sample) { of.teamOf(sumShared).losses[0] = 4 }, nil},
		{func(of *sample) { of.teamOf(amaxNever).saturated = 1e-6 }, map[string]float64{"never-saturates": 1}},
		{func(of *sample) { of.teamOf(sumLate).summed = 1e-6 }, map[string]float64{"late-saturates": 1}},
	} {
		want := map[string]float64{}
		for name, v := range before {
			want[name] = v
		}
		for name, v := range test.want {
			want[name] = v
		}
		require.InDeltaMapValues(t, want, found(madeUp(test.change)), 1e-9)
	}
}

// TestExactGoals: one value that differs in fixed slices fails them, and ranks without are
// caught only where all of them differ.
func TestExactGoals(t *testing.T) {
	outcomes := func(change func(*sample)) map[string]report.Outcome {
		all := map[string]report.Outcome{}
		for _, g := range madeUp(change).Goals {
			if strings.HasPrefix(g.Name, "slices-") || strings.HasPrefix(g.Name, "ranks-") {
				all[g.Name] = g.Outcome
			}
		}
		return all
	}
	got := outcomes(nil)
	require.Len(t, got, 6)
	require.Equal(t, report.Met, got["slices-fp8"])
	require.Equal(t, report.NotCaught, got["ranks-fp8"], "they must differ")

	got = outcomes(func(of *sample) {
		of.slicedOf(slicedFP8, true)[3].differ = 1
		for _, l := range of.slicedOf(slicedBF16, false)[1:] {
			l.differ = 5
		}
		for _, l := range of.slicedOf(slicedFP32, false)[2:] {
			l.differ = 5
		}
	})
	require.Equal(t, map[string]report.Outcome{
		"slices-fp32": report.Met, "slices-fp8": report.Missed, "slices-bf16": report.Met,
		"ranks-fp32": report.NotCaught, "ranks-fp8": report.NotCaught, "ranks-bf16": report.Caught,
	}, got)
}

// TestSentencesFollow: findings state figures of the seeds and what became of goals, and
// conclude nothing else.
func TestSentencesFollow(t *testing.T) {
	r := madeUp(func(of *sample) { of.teamOf(gatherFP8).losses[3] = 3 })
	for _, f := range r.Findings {
		require.Empty(t, f.Follows)
	}
	require.Contains(t, labtest.Sentences(r), "in E4M3 1x128 +50 (+50 to +50)")
	require.NotContains(t, labtest.Sentences(r), "not judged", "said once, of all")
	require.Contains(t, labtest.Sentences(r), "by simulation of the sum alone")
}
