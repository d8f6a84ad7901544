package fp4

import (
	"fmt"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/nn"
)

func (s *study) report() *report.Report {
	r := &report.Report{
		Charts: []chart.Chart{s.effectChart(), s.seedChart(), s.gapChart(), s.roundingChart()},
		Tables: []report.Table{s.effectTable(), s.lossTable(), s.roundingTable(), s.divisionTable(), s.curveTable()},
	}
	r.Goals = append(s.trainingGoals(), append(s.roundingGoals(), s.divisionGoals()...)...)
	r.Findings = []report.Finding{s.partsFinding(), s.formatsFinding(), s.noiseFinding(), s.roundingFinding(), s.divisionFinding()}
	c := s.curves[0]
	r.Limits = []string{
		fmt.Sprintf("Models have %d parameters in four layers or fewer and see %d bytes. NVIDIA's figures are for 12 billion and ten trillion tokens; what helps against outliers, which take long training to grow, cannot show here. A part that is not seen here may matter there.",
			c.Params, s.setup.Steps*s.setup.Batch*s.setup.Seq),
		"One layer of four in BF16 is a larger share than the 15 % that NVIDIA keeps, so what that part is worth is not what it is worth there.",
		"Operands are quantized from FP32 and products accumulate in FP32; attention, norms, embedding and head are FP32 in all runs. A GPU's kernels differ in these.",
		fmt.Sprintf("%d seeds see what is some three standard errors large. Of eleven comparisons about one in three labs would have one that passes by chance.", len(s.seeds)),
		"MS-EDEN is measured by itself and not trained with.",
	}
	return r
}

// goal is one of a difference in loss, which only runs of full length are judged by.
func goal(what, want string, e effect, met bool) report.Goal {
	return report.NewGoal(what, want, e.String(), met).AtLength()
}

// above says what a goal compares.
func (s *study) above(way, other int) string {
	return fmt.Sprintf("Held-out loss of %s above that of %s", s.ways[way].name, s.ways[other].name)
}

var wantWorse = fmt.Sprintf("higher by more than %v %% and %v standard errors", percentToMatter, errorsToSee)

func (s *study) trainingGoals() (goals []report.Goal) {
	within := func(way int, limit float64) {
		e := s.over(way, bf16Way)
		goals = append(goals, goal(s.above(way, bf16Way), fmt.Sprintf("within %v %%", limit), e, math.Abs(e.mean) < limit))
	}
	worse := func(way, other int) {
		e := s.over(way, other)
		goals = append(goals, goal(s.above(way, other), wantWorse, e, e.worse()))
	}
	within(fp8Way, eightBitGap)
	within(mxfp8Way, eightBitGap)
	within(nvfp4Way, fourBitGap)
	for i := range nn.Parts() {
		worse(firstPart+i, nvfp4Way)
	}
	worse(plainWay, nvfp4Way)
	worse(nvfp4Way, fourOverSixWay)
	worse(mxfp4Way, nvfp4Way)
	return goals
}

func (s *study) roundingGoals() []report.Goal {
	random, eden := s.rounding(normalValues, stochasticRounding), s.rounding(normalValues, edenRounding)
	limit := 4 / float64(random.draws)
	return []report.Goal{
		report.NewGoal("What rounding at random loses over what MS-EDEN does, of normal values", "more than 2 times",
			fmt.Sprintf("%.2f times: %s and %s", random.once/eden.once, report.Percent(random.once), report.Percent(eden.once)), random.once > 2*eden.once).AtLength(),
		report.NewGoal(fmt.Sprintf("What the mean of %d roundings loses over what one does, at random and by MS-EDEN", random.draws),
			fmt.Sprintf("at most %.3g", limit), fmt.Sprintf("%.3g and %.3g", random.ofMean/random.once, eden.ofMean/eden.once),
			random.ofMean <= limit*random.once && eden.ofMean <= limit*eden.once),
	}
}

// The divisions, by their places.
const (
	randomDivision = iota
	boundaryDivision
	besideDivision
)

func (s *study) divisionGoals() []report.Goal {
	random, exact := s.divisions[randomDivision], s.divisions[boundaryDivision]
	return []report.Goal{
		report.NewGoal("Codes of random values that a reciprocal changes", "none", fmt.Sprintf("%d of %d", random.differ, random.values), random.differ == 0),
		report.NewGoal("Codes of values on a boundary of rounding that a reciprocal changes", "4.76 %: 42 of 882",
			fmt.Sprintf("%.2f %%: %d of %d", 100*exact.share(), exact.differ, exact.values), exact.differ == 42 && exact.values == 882),
	}
}

// partsFinding says which parts matter.
func (s *study) partsFinding() report.Finding {
	var all []string
	follows := []report.Conclusion{}
	for i, p := range nn.Parts() {
		e := s.over(firstPart+i, nvfp4Way)
		all = append(all, fmt.Sprintf("%s %v", p, e))
		follows = append(follows, report.If(e.worse(),
			fmt.Sprintf("Training here needs %s.", p),
			fmt.Sprintf("That training here needs %s is not shown.", p)))
	}
	e := s.over(plainWay, nvfp4Way)
	follows = append(follows, report.If(e.worse(),
		fmt.Sprintf("Without all parts the loss is higher by %v.", e),
		fmt.Sprintf("Even without all parts the loss is not shown to be higher: %v.", e)))
	return report.NewFinding("Held-out loss of NVFP4 above that with all parts, without one of them: "+strings.Join(all, ", ")+".", follows...)
}

func (s *study) formatsFinding() report.Finding {
	four, mx := s.over(nvfp4Way, bf16Way), s.over(mxfp4Way, bf16Way)
	six, between, plain := s.over(fourOverSixWay, nvfp4Way), s.over(mxfp4Way, nvfp4Way), s.over(plainMXFP4Way, mxfp4Way)
	return report.NewFinding(fmt.Sprintf("Above BF16, FP8 has a loss of %v, MXFP8 of %v, NVFP4 of %v and MXFP4 of %v.", s.over(fp8Way, bf16Way), s.over(mxfp8Way, bf16Way), four, mx),
		report.If(four.worse(),
			"Four bits cost loss, with all parts of the recipe too.",
			"With all parts of the recipe it is not shown that four bits cost loss."),
		report.If(six.better(),
			fmt.Sprintf("Four over six lowers the loss: %v.", six),
			fmt.Sprintf("That four over six lowers the loss is not shown: %v.", six)),
		report.If(between.worse(),
			fmt.Sprintf("MXFP4's loss is higher than NVFP4's: %v.", between),
			fmt.Sprintf("That MXFP4's loss is higher than NVFP4's is not shown: %v.", between)),
		report.If(plain.worse(),
			fmt.Sprintf("MXFP4 needs its parts: without them its loss is higher by %v.", plain),
			fmt.Sprintf("That MXFP4 needs its parts is not shown: without them its loss is higher by %v.", plain)))
}

// noiseFinding says how large an effect would have to be.
func (s *study) noiseFinding() report.Finding {
	most := 0.0
	for i := range nn.Parts() {
		most = max(most, s.over(firstPart+i, nvfp4Way).ofMean)
	}
	return report.NewFinding(fmt.Sprintf("With %d seeds the largest standard error of what a part is worth is %.2f %%.", len(s.seeds), most),
		report.If(errorsToSee*most > fourBitGap,
			fmt.Sprintf("So an effect of %v %% may not be seen here.", fourBitGap),
			fmt.Sprintf("So every effect of %v %% would be seen here.", fourBitGap)))
}

func (s *study) roundingFinding() report.Finding {
	nearest, six := s.rounding(normalValues, nearestRounding), s.rounding(normalValues, fourOverSixRounding)
	random, eden := s.rounding(normalValues, stochasticRounding), s.rounding(normalValues, edenRounding)
	room := s.rounding(normalValues, roomyRounding)
	outlying, outlyingEden := s.rounding(valuesWithOutliers, stochasticRounding), s.rounding(valuesWithOutliers, edenRounding)
	return report.NewFinding(fmt.Sprintf("Of the squares of normal values, NVFP4 loses %s to nearest, %s with four over six, %s at random, %s at random under scales so large that nothing saturates, and %s by MS-EDEN; of values with outliers %s at random and %s by MS-EDEN.",
		report.Percent(nearest.once), report.Percent(six.once), report.Percent(random.once), report.Percent(room.once), report.Percent(eden.once), report.Percent(outlying.once), report.Percent(outlyingEden.once)),
		report.If(random.once > 2*eden.once,
			"Quartet II's claim holds under TransformerEngine's scales: stochastic rounding loses more than twice as much as unbiased rounding need lose.",
			fmt.Sprintf("Under TransformerEngine's scales, which let values saturate, Quartet II's claim is not confirmed: stochastic rounding loses %.2f times as much.", random.once/eden.once)),
		report.If(room.once > 2*eden.once,
			fmt.Sprintf("With the room that Quartet II gives it, which keeps it unbiased, it loses more than twice as much: %.2f times.", room.once/eden.once),
			fmt.Sprintf("With the room that Quartet II gives it, it does not lose more than twice as much: %.2f times.", room.once/eden.once)),
		report.If(nearest.ofMean > 0.9*nearest.once && random.ofMean < nearest.ofMean,
			"Rounding to nearest repeats its error, however often it is done; the mean of many roundings at random is closer.",
			"The mean of many roundings at random is no closer than rounding to nearest."),
		report.If(outlying.once > outlyingEden.once,
			"With outliers MS-EDEN loses less too.",
			"With outliers the rotation spreads them, and MS-EDEN does not lose less."))
}

func (s *study) divisionFinding() report.Finding {
	random, exact, near := s.divisions[randomDivision], s.divisions[boundaryDivision], s.divisions[besideDivision]
	return report.NewFinding(fmt.Sprintf("Codes differ between division and the reciprocal in %d of %d random values, in %d of %d (%s) on boundaries and in %d of %d within %d float32 of them.",
		random.differ, random.values, exact.differ, exact.values, report.Percent(exact.share()), near.differ, near.values, beside),
		report.If(random.differ == 0 && exact.differ > 0,
			"So random data cannot tell one from the other, and data on boundaries can. For example, "+exact.example+".",
			"So random data tell one from the other as well as data on boundaries do."))
}
