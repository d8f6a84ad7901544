package moe

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/report"
)

// made are results of as many seeds as were declared. What is good is so as it is hoped, and
// what is bad the opposite.
func made(good bool) *results {
	choose := func(ifGood, ifBad float64) float64 {
		if good {
			return ifGood
		}
		return ifBad
	}
	s := studyOf(lab.Options{Length: lab.Short})
	r := &results{study: s}
	for seed := range 24 {
		few := 1e-5 * (2 + math.Sin(float64(7*seed))) // seeds differ
		f := found{seed: uint64(seed)}
		for i := range arms() {
			own := few * (2 + math.Cos(float64(5*seed+i))) // arms differ too
			loss := 2 * (1 + own)
			switch i {
			case fp8Arm, deepSeekArm, mxfp8Arm:
				loss *= choose(1, 1.01)
			case slowerArm:
				loss *= choose(1.1, 1)
			}
			a := result{losses: slices.Repeat([]float64{loss}, s.steps), heldOut: 9}
			a.losses[0] = 7 // in the first third, which is not judged
			uneven := 1000
			if i == unbalancedArm {
				uneven = int(choose(9000, 500))
			}
			if i == fp8Arm {
				uneven = int(choose(1000, 3000))
			}
			for range s.steps {
				a.loads = append(a.loads, [][]int{{10000 + uneven + seed, 10000 - uneven, 10000, 10000 + i}})
			}
			if arms()[i].heard {
				a.heard = madeHeard(s, few, choose)
			}
			f.arms = append(f.arms, a)
		}
		for i := range compared() {
			c := comparison{choices: 1e6, changed: []int{1e4 + seed}}
			c.gradients = []gradientError{{
				weight: "model.layers.0.self_attn.o_proj.weight", squares: 1,
				off: math.Pow(0.1+few*math.Cos(float64(5*seed+i)), 2),
			}}
			switch i {
			case routerE2M1There:
				c.changed[0] *= int(choose(50, 1))
			case e5m2There:
				c.gradients[0].off *= choose(4, 1)
			case fp8There, deepSeekThere, mxfp8There:
				c.changed[0] *= int(choose(1, 90))
			}
			if i == deepSeekThere || i == mxfp8There || i == blocksThere {
				c.gradients[0].off *= choose(1, 9)
			}
			f.compared = append(f.compared, c)
		}
		flushed := int(choose(5000, 1010))
		f.rounded = []roundings{{
			place: place{operand: inputOfDown},
			all: [3]rounding{
				oneScale:  {nonzero: 1e6, flushed: flushed + seed, squares: 1},
				scaleEach: {nonzero: 1e6, flushed: 1000, squares: 1},
				scaleTile: {nonzero: 1e6, flushed: 10, squares: 1},
			},
		}}
		r.seeds = append(r.seeds, f)
	}
	return r
}

// madeHeard is what was heard of the one mixture in all steps.
func madeHeard(s study, few float64, choose func(good, bad float64) float64) (all []heard) {
	for step := range s.steps {
		for e := range s.experts() + 1 {
			amax := 1.0
			if e == 0 {
				amax = choose(8, 1.1) + few
			}
			h := heard{place: place{inputOfDown, 0, e}, step: step, amax: amax, elements: 1e9}
			if h.saturated = int64(few * 1e9); e == s.experts() {
				h.saturated = int64(choose(10, 1e6))
			}
			all = append(all, h)
		}
	}
	return all
}

func outcomes(r *results) map[string]report.Outcome {
	all := make(map[string]report.Outcome)
	for _, g := range r.report().Goals {
		all[g.Name] = g.Outcome
	}
	return all
}

// TestCanFail: goals are met, missed, caught and not caught as figures have it.
func TestCanFail(t *testing.T) {
	good, bad := outcomes(made(true)), outcomes(made(false))
	for _, h := range declared().Hypotheses {
		require.Equal(t, report.Met, good[h.Name], h.Name)
		require.Equal(t, report.Missed, bad[h.Name], h.Name)
	}
	for _, c := range declared().Controls {
		require.Equal(t, report.Caught, good[c.Name], c.Name)
		require.Equal(t, report.NotCaught, bad[c.Name], c.Name)
	}
	few := made(true)
	few.seeds = few.seeds[:2]
	for name, o := range outcomes(few) {
		require.Equal(t, report.NotJudged, o, name)
	}
}

// TestSentencesFollow: what is said is what came out.
func TestSentencesFollow(t *testing.T) {
	good, bad := labtest.Sentences(made(true).report()), labtest.Sentences(made(false).report())
	for _, name := range declared().Names() {
		switch name {
		case "choices-deepseek-v3", "choices-mxfp8", "error-deepseek-v3", "error-mxfp8":
			continue // in the table
		}
		require.Regexp(t, name+" is (met|caught)", good, name)
		require.Regexp(t, name+" is (missed|not caught)", bad, name)
	}
}

// TestJudged: there are values for all that is declared, and no others.
func TestJudged(t *testing.T) {
	var names []string
	for name, values := range made(true).judged() {
		names = append(names, name)
		require.Len(t, values, 24, name)
	}
	require.ElementsMatch(t, declared().Names(), names)
}
