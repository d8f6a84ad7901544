package fp4

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
)

// madeUp is a study with given held-out losses and rounding that is as claimed.
func madeUp(loss func(seed, way int) float64) *study {
	s := &study{ways: ways(), seeds: make([]uint64, declared().Hypotheses[0].Sample), model: training.Llama(32, 3, 8), setup: training.Setup{Steps: 1, Batch: 1, Seq: 1}}
	for seed := range s.seeds {
		for way := range s.ways {
			l := loss(seed, way)
			s.curves = append(s.curves, training.Curve{Losses: []float64{l}, HeldOut: l})
		}
	}
	for seed := range 8 {
		var all []rounding
		for kind := range valueNames {
			for i, w := range roundingWays() {
				of := rounding{values: valueNames[kind], way: w.name, once: []float64{0.01, 0.009, 0.03, 0.011, 0.035}[i], draws: 64}
				of.once *= 1 + float64(seed*(i+1))/1e5 // seeds differ, and so do ratios of ways
				of.ofMean = of.once
				if i >= stochasticRounding {
					of.ofMean = of.once / 64 * (1 + float64(seed)/1000)
				}
				all = append(all, of)
			}
		}
		s.roundings = append(s.roundings, all)
	}
	s.divisions = []division{{"random", 100, 0, ""}, {"on a boundary", 882, 42, "an example"}, {"beside", 10, 1, ""}}
	return s
}

// asClaimed has every hypothesis hold.
func asClaimed(seed, way int) float64 {
	percents := map[int]float64{fp8Way: 0.1, mxfp8Way: 0.1, nvfp4Way: 0.9, fourOverSixWay: 0.5, mxfp4Way: 2, plainWay: 3, plainMXFP4Way: 4}
	for i := range partCount {
		percents[firstPart+i] = 1.5
	}
	noise := float64(seed%3) / 1000
	return 2 * (1 + (percents[way]+noise)/100)
}

// TestGoals are met where what is claimed comes out, and missed where the opposite does.
func TestGoals(t *testing.T) {
	tally := func(s *study) report.Tally { return report.TallyOf(s.report()) }
	require.Equal(t, report.Tally{Met: 15, Controls: report.Controls{Caught: 2}}, tally(madeUp(asClaimed)))
	require.Equal(t, report.Tally{Met: 3 + 5, Missed: 7, Controls: report.Controls{Caught: 1, NotCaught: 1}},
		tally(madeUp(func(seed, way int) float64 { return 2 + 1e-6*math.Sin(float64(7*seed+way)) })), "as good as alike: only gaps are as wanted")
	require.Equal(t, report.Tally{Missed: 15, Controls: report.Controls{Caught: 1, NotCaught: 1}}, tally(contrary()))
	require.Equal(t, report.Tally{Met: 5, Undecided: 10, Controls: report.Controls{Caught: 1, Undecided: 1}},
		tally(madeUp(func(int, int) float64 { return math.NaN() })), "nothing is met by no number")
}

// contrary has every hypothesis fail.
func contrary() *study {
	percents := map[int]float64{fp8Way: 1, mxfp8Way: -1, nvfp4Way: 5, fourOverSixWay: 6, mxfp4Way: 4, plainWay: 4, plainMXFP4Way: 0}
	s := madeUp(func(seed, way int) float64 { return 2 * (1 + (percents[way]+math.Sin(float64(7*seed+way))/1000)/100) })
	for seed, of := range s.roundings {
		for i := range of {
			few := 1 + math.Sin(float64(7*seed+i))/1e5 // seeds differ
			of[i].once, of[i].ofMean = few*0.01*float64(1+i%roundingCount), 0.5
		}
	}
	s.divisions[randomDivision].differ, s.divisions[boundaryDivision].differ = 3, 4
	return s
}

// shortened is the report of a study as that of a short run.
func shortened(s *study) *report.Report {
	r := s.report()
	r.SetLength(report.Short)
	return r
}

// TestSentencesFollow feeds the report with runs of one outcome and of the opposite.
func TestSentencesFollow(t *testing.T) {
	noisy := madeUp(func(seed, way int) float64 { return 2 + float64((seed*7+way*5)%11)/5 })
	labtest.Outcomes(t, madeUp(asClaimed).report(), contrary().report(), noisy.report())
	labtest.NotSaid(t, contrary().report(), "hadamard the loss is higher", "of them the loss is higher", "four over six in nvfp4 the loss is lower", "parts the loss is higher",
		"as Quartet II claims: ", "more than twice as much: ", "mean of roundings at random is closer", "do not tell one from the other, and")
	labtest.NotSaid(t, madeUp(asClaimed).report(), "not seen to be", "does not lose more", "is no closer", "tell one from the other too")
}

// TestVerdicts: each of three outcomes has its words.
func TestVerdicts(t *testing.T) {
	s := madeUp(asClaimed)
	for says, bySeed := range map[string][]float64{
		"With it the loss is higher: +2.00 % (± 0.00).":                   {2, 2, 2},
		"With it the loss is lower: -2.00 % (± 0.00).":                    {-2, -2, -2},
		"With it the loss is not seen to be different: +0.00 % (± 0.18).": {-0.1, 0.1, 0.1, -0.1, 0, 0},
		"With it the loss is not seen to be different: +NaN % (± NaN).":   {1, math.NaN(), 1},
		"With it the loss is higher: +0.50 % (± 0.18).":                   {0.4, 0.6, 0.6, 0.4, 0.5, 0.5},
	} {
		require.Equal(t, says, s.newEffect(bySeed).verdict("With it").String())
	}
}

// TestShortRun: nothing that is said of training follows from a run that hardly trains.
func TestShortRun(t *testing.T) {
	for _, s := range []*study{madeUp(asClaimed), contrary()} {
		r := shortened(s)
		labtest.NotSaid(t, r, "the loss is ", "the loss differs", "made up for", "Quartet II claims", "Quartet II's code")
		require.Len(t, r.Findings, len(s.report().Findings))
		said := labtest.Sentences(r)
		for _, c := range append(s.biasFinding().Follows, s.divisionFinding().Follows...) {
			require.Contains(t, said, c.String(), "arithmetic is judged")
		}
	}
}

// TestLimitsFollow: what a run cannot show is said of its own seeds, layers and steps.
func TestLimitsFollow(t *testing.T) {
	s := madeUp(asClaimed)
	limits := strings.Join(s.limits(), "\n")
	for _, want := range []string{
		"see 1 bytes in 1 steps", "in 3 layers", "1 of 3 layers multiply in BF16 (33 %)", "Student's t of 36 seeds", "one or more of 11 comparisons",
	} {
		require.Contains(t, limits, want)
	}
	s.seeds, s.model.Layers, s.setup = s.seeds[:2], 8, training.Setup{Steps: 5, Batch: 2, Seq: 7}
	limits = strings.Join(s.limits(), "\n")
	for _, want := range []string{
		"see 70 bytes in 5 steps", "in 8 layers", "2 of 8 layers multiply in BF16 (25 %)", "Student's t of 2 seeds",
	} {
		require.Contains(t, limits, want)
	}
	require.Contains(t, s.sizeFinding().String(), "With 2 seeds")
}

// TestDeclared: a whole run judges all that is declared, a look no loss.
func TestDeclared(t *testing.T) {
	s := madeUp(asClaimed)
	labtest.Declared(t, Experiment, s.report())
	s.seeds = s.seeds[:4]
	require.Equal(t, report.Tally{Met: 5, NotJudged: 10, Controls: report.Controls{Caught: 1, NotJudged: 1}}, report.TallyOf(s.report()))
}
