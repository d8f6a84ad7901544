package sensitivity

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/nn"
)

// made are results of as many seeds as were declared, in which the error of gradients and
// the gap of the loss of an arm are so many percent.
func made(figures func(arm int) (gradient, gap float64)) *results {
	s := studyOf(lab.Options{Length: lab.Short})
	r := &results{study: s, params: []string{"model.norm.weight"}}
	for seed := range 8 {
		f := found{seed: uint64(seed), common: make([]float64, r.study.common)}
		for i := range arms() {
			gradient, gap := figures(i)
			few := 1e-6 * (1 + math.Sin(float64(7*seed+i))) // seeds differ, and so do ratios of arms
			f.arms = append(f.arms, result{
				before: 2, after: 2 * (1 + gap/100 + few), losses: make([]float64, r.study.apart),
				gradients: []gradientError{{
					off: math.Pow(gradient/100+few, 2), got: 1, want: 1, along: few,
				}},
			})
		}
		r.seeds = append(r.seeds, f)
	}
	return r
}

// asAssumed are figures as practice assumes them, or the other way round.
func asAssumed(opposite bool) func(arm int) (gradient, gap float64) {
	all := map[int][2]float64{
		practiceArm: {1.05, 0}, allFP8Arm: {9, 1}, fp4Arm: {30, 1},
	}
	for _, class := range nn.OperatorClasses() {
		rank := float64(tierOf(class).rank)
		if opposite {
			rank = 2 - rank
		}
		all[armOf(class, inFP8)] = [2]float64{1 + rank, 0.1 + rank}
		all[armOf(class, inBF16)] = [2]float64{0.1 * (1 + rank), 0}
	}
	if opposite {
		all[practiceArm], all[allFP8Arm] = [2]float64{4, 1}, [2]float64{3, 0}
		all[armOf(nn.ClassHead, inFP8)] = [2]float64{2, -1}
		all[armOf(nn.ClassHead, inBF16)] = [2]float64{2, 1}
	}
	return func(arm int) (gradient, gap float64) { return all[arm][0], all[arm][1] }
}

// TestSentencesFollow feeds the report with figures of one outcome and of the opposite.
func TestSentencesFollow(t *testing.T) {
	labtest.Outcomes(t, made(asAssumed(false)).report(), made(asAssumed(true)).report())
}

// TestCanFail: goals are met, missed, caught and not caught as figures have it.
func TestCanFail(t *testing.T) {
	outcomes := func(r *results) map[string]report.Outcome {
		all := make(map[string]report.Outcome)
		for _, g := range r.report().Goals {
			all[g.Name] = g.Outcome
		}
		return all
	}
	as, against := outcomes(made(asAssumed(false))), outcomes(made(asAssumed(true)))
	for _, p := range pairs() {
		name := "gradient-" + p.String()
		require.Equal(t, report.Met, as[name], name)
		require.Equal(t, report.Missed, against[name], name)
	}
	require.Equal(t, report.Met, as["loss-residual-over-products"])
	require.Equal(t, report.Missed, against["loss-residual-over-products"])
	require.Equal(t, report.Met, as["bf16-loss-head"])
	require.Equal(t, report.Missed, against["bf16-loss-head"])
	require.Equal(t, report.Met, as["practice-loss"])
	require.Equal(t, report.Missed, against["practice-loss"])
	require.Equal(t, report.Met, as["bf16-reductions-over-head"])
	require.Equal(t, report.Missed, against["bf16-reductions-over-head"])
	require.Equal(t, report.Met, as["bias-head"])
	require.Equal(t, report.Caught, as["sees-all-fp8"])
	require.Equal(t, report.NotCaught, against["sees-all-fp8"])

	few := made(asAssumed(false))
	few.seeds = few.seeds[:2]
	for name, o := range outcomes(few) {
		require.Equal(t, report.NotJudged, o, name)
	}
}
