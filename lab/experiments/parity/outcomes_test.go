package parity

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/report"
)

// made are results of as many seeds as were declared, in which E5M2 is as bad as it is said,
// in loss and in gradients, and in which so much of FP8's error stays.
func made(e5m2 float64, stays float64) *results {
	r := &results{
		study:   studyOf(lab.Options{Length: lab.Short}),
		weights: []string{"model.layers.0.mlp.up_proj.weight"},
	}
	for seed := range 12 {
		few := 1e-5 * float64(seed) // seeds differ
		f := found{
			seed: uint64(seed), root: make([]float64, r.study.common),
			plain: make(widths, len(operandKinds)), spread: make(widths, len(operandKinds)),
		}
		for arm, a := range arms() {
			bad := 1e-3
			if arm == e5m2Arm {
				bad = e5m2
			}
			after := 2 * (1 + 0.01*bad + few/10)
			if a.name == "FP32" {
				after = 2
			}
			losses := make([]float64, r.study.apart)
			f.arms = append(f.arms, result{losses: losses, before: 2, after: after})
			if arm == fp32Arm {
				continue
			}
			own := 1e-13 * (1 + math.Sin(float64(7*seed+arm))) // ratios of arms differ too
			e := map[string]layerError{r.weights[0]: {
				relative: bad + few + own, mean: make([]float64, r.study.batches), sum: bad + own,
				fall: stays + own, persistent: stays*stays + own,
			}}
			f.fixed, f.walk = append(f.fixed, e), append(f.walk, e)
		}
		f.added = [][]additionError{make([]additionError, len(additions()))}
		r.seeds = append(r.seeds, f)
	}
	return r
}

// TestSentencesFollow: what came out is said of E5M2 as its controls have it.
func TestSentencesFollow(t *testing.T) {
	bad, good := labtest.Sentences(made(1, 1).report()), labtest.Sentences(made(1e-3, 0.1).report())
	require.Contains(t, bad, "error-e5m2 is caught")
	require.Contains(t, good, "error-e5m2 is not caught")
	require.Contains(t, bad, "by +1.0006 % (+1.0003 to +1.0008) in E5M2")
	require.Contains(t, good, "error-fp8 is met")
}

// TestCanFail: goals are met, missed, caught and not caught as figures have it.
func TestCanFail(t *testing.T) {
	outcome := func(r *results, name string) report.Outcome {
		for _, g := range r.report().Goals {
			if g.Name == name {
				return g.Outcome
			}
		}
		require.Fail(t, name)
		return report.NotJudged
	}
	bad, good := made(1, 1), made(1e-3, 0.1)
	require.InDelta(t, 1000, bad.judged()["error-e5m2"][0], 1e-6, "times BF16's")
	require.InDelta(t, 1000, bad.judged()["sum-e5m2"][0], 1e-6)
	require.InDelta(t, 1, bad.judged()["loss-e5m2"][0], 1e-6, "percent")
	require.Equal(t, report.Caught, outcome(bad, "error-e5m2"))
	require.Equal(t, report.NotCaught, outcome(good, "error-e5m2"))
	require.Equal(t, report.Met, outcome(good, "error-fp8"))
	for i := range good.seeds {
		good.seeds[i].arms[fp8Arm].after *= 1.1
		good.seeds[i].fixed[fp8Arm-1] = bad.seeds[i].fixed[e5m2Arm-1]
	}
	require.Equal(t, report.Missed, outcome(good, "error-fp8"))
	require.Equal(t, report.Missed, outcome(good, "loss-fp8"))
	good.seeds = good.seeds[:2]
	require.Equal(t, report.NotJudged, outcome(good, "loss-fp8"))
}
