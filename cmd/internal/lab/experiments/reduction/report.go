package reduction

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/train"
)

// reducerThreshold is the share of saturated values above which FP8-LM halves its
// factor.
const reducerThreshold = 1e-5

// lossAllowed is how far a loss may be from that in FP32.
const lossAllowed = 0.01

// Doubling an automatic factor takes this many steps.
const doublingSteps = 1000

// independentError is the relative error of a mean of n values without a common sign
// that are rounded to E4M3, as is each partial sum, if roundings are independent. One
// is uniform over a step of 1/8 of the power of two below a value, and so relative to
// values uniform between two powers √(1/768 / (7/3)). Partial sum k is √k as large as
// a value.
func independentError(n int) float64 {
	const one = 1.0 / (768 * 7 / 3)
	x := float64(n)
	return math.Sqrt(one * (1 + (x+1)/2 - 1/x))
}

func (r *study) report() *report.Report {
	return &report.Report{
		Goals:    r.goals(),
		Findings: r.findings(),
		Limits: []string{
			"Workers are simulated: their gradients, those of one sequence each or all the same, are added one after the other, and each partial sum is rounded to E4M3. Rings do that too; trees have shorter chains.",
			"Large batches are between the two kinds: the more sequences a worker has, the more alike are the gradients. All the same is the limit, and made, not met.",
			fmt.Sprintf("Factors adapted over %d steps, in which they can be halved but do not grow; growing was followed on %d gradients that stay the same, for %d workers. In FP8-LM gradients have been in FP8 once before.", r.steps, sawtoothValues, sawtoothWorkers),
			fmt.Sprintf("Losses are of one seed and %d steps with %d workers. The range of FP16, in which large sums overflow without FP8, is not in the library.", r.teamSteps, r.team),
		},
		Charts: []chart.Chart{
			r.worldChart("Underflow in FP8: nonzero values that become 0", func(w *world) float64 { return 100 * w.underflow() }),
			r.worldChart("Overflow in FP8: values and sums that saturate", func(w *world) float64 { return 100 * w.overflow() },
				chart.Reference{Name: "FP8-LM's threshold", Value: 100 * reducerThreshold}),
			r.errorChart(sequences), r.errorChart(alike),
			r.factorChart(), r.sawtoothChart(), r.lossChart(),
		},
		Tables: []report.Table{r.worldTable(), r.teamTable(), r.tensorTable(), r.factorTable(), r.lossTable()},
	}
}

var (
	post = way{true, train.DividePost}
	pre  = way{true, train.DividePre}
	root = way{true, train.DivideRoot}
	auto = way{true, train.DivideAuto}
)

func (r *study) largest() int { return slices.Max(r.scope.worlds) }

func (r *study) goals() []report.Goal {
	n := r.largest()
	goals := []report.Goal{r.exactGoal(), r.postGoal(), r.preGoal()}
	for _, k := range kinds {
		goals = append(goals,
			r.ratioGoal(k, pre, "n", float64(n)),
			r.ratioGoal(k, root, "√n", math.Sqrt(float64(n))))
	}
	for _, k := range kinds {
		a, p := r.world(k, n, auto), r.world(k, n, pre)
		goals = append(goals, // of factors that have had the steps to adapt
			report.NewGoal(fmt.Sprintf("%v: overflow once adapted", a), "at most 0.001 %, FP8-LM's threshold", report.Percent(a.overflow()), a.overflow() <= reducerThreshold).AtLength(),
			report.NewGoal(fmt.Sprintf("%v: underflow", a), "less than by pre",
				fmt.Sprintf("%s against %s", report.Percent(a.underflow()), report.Percent(p.underflow())), a.underflow() < p.underflow()).AtLength())
	}
	few := r.world(sequences, r.scope.worlds[1], pre)
	want := independentError(few.size)
	between := r.betweenHalvings()
	return append(goals,
		report.NewGoal(fmt.Sprintf("%v: relative error of the mean", few), fmt.Sprintf("what independent roundings give, %s, within a factor of 1.5", report.Percent(want)),
			report.Percent(few.err), few.err < 1.5*want && few.err > want/1.5),
		r.stalledGoal(),
		report.NewGoal("FP8 auto, one, two and three replicas: values that differ", "none",
			fmt.Sprintf("%d of %d", r.differing, r.compared), r.differing == 0 && r.compared > 0),
		report.NewGoal("Steps from one halving of the automatic factor to the next, gradients as they are", "1000, in which it doubles: from 999 to 1001",
			fmt.Sprint(between), between >= doublingSteps-1 && between <= doublingSteps+1),
		r.lossGoal())
}

// exactGoal is about FP32, where nothing should be lost whatever the division.
func (r *study) exactGoal() report.Goal {
	n := float64(r.largest())
	var lost int64
	worst := 0.0
	for _, w := range r.worlds {
		if !w.way.fp8 {
			lost += w.encode.Flushed + w.encode.Saturated() + w.sum.Saturated()
			worst = max(worst, w.err)
		}
	}
	return report.NewGoal("FP32, all worlds and divisions: values lost, and the largest relative error", fmt.Sprintf("none, and at most n·2^-24 = %.2g", n*0x1p-24),
		fmt.Sprintf("%d, %.2g", lost, worst), lost == 0 && worst <= n*0x1p-24)
}

func (r *study) postGoal() report.Goal {
	least := 1.0
	for _, w := range r.worlds {
		if w.way == post {
			least = min(least, w.overflow())
		}
	}
	return report.NewGoal("FP8 post: the least overflow of all worlds", "above FP8-LM's threshold of 0.001 %, as sums may be larger than the values that the scale is made for", report.Percent(least), least > reducerThreshold)
}

func (r *study) preGoal() report.Goal {
	most := 0.0
	for _, w := range r.worlds {
		if w.way == pre {
			most = max(most, w.overflow())
		}
	}
	return report.NewGoal("FP8 pre: the largest overflow of all worlds", "at most 0.001 %, as what is added has been divided", report.Percent(most), most <= reducerThreshold)
}

// ratioGoal compares the underflow of a division with that of post: where small
// gradients are as frequent as smaller ones, it grows with what they are divided by.
func (r *study) ratioGoal(k kind, w way, name string, by float64) report.Goal {
	a, b := r.world(k, r.largest(), w), r.world(k, r.largest(), post)
	ratio := a.underflow() / b.underflow()
	return report.NewGoal(fmt.Sprintf("%v: underflow over that of post", a),
		fmt.Sprintf("%s = %.3g, if gradients are dense at 0: within a factor of 2", name, by), fmt.Sprintf("%.3g", ratio), ratio > by/2 && ratio < 2*by)
}

// stalledGoal is about sums that stop growing, which takes more workers than a short run
// has.
func (r *study) stalledGoal() report.Goal {
	const soonest, latest = 16, 32 // equal values, after which a sum in E4M3 stays
	same := r.world(alike, r.largest(), pre)
	n := float64(same.size)
	what, got := fmt.Sprintf("%v: relative error of the mean", same), report.Percent(same.err)
	if n <= latest {
		return report.NewGoal(what, fmt.Sprintf("with more than %d workers that of a sum which stops growing at %d to %d equal values", latest, soonest, latest), got, false).AtLength()
	}
	least, most := 1-latest/n, 1-soonest/n
	return report.NewGoal(what,
		fmt.Sprintf("from %s to %s, as a sum of equal values in E4M3 stops growing at %d to %d of them", report.Percent(least), report.Percent(most), soonest, latest),
		got, same.err >= least && same.err <= most)
}

// betweenHalvings returns the steps between the last two halvings of the small
// tensor's factor, 0 if there were fewer.
func (r *study) betweenHalvings() int {
	last, between := -1, 0
	for i := 1; i < len(r.factors); i++ {
		if r.factors[i] < r.factors[i-1] {
			if last >= 0 {
				between = i - last
			}
			last = i
		}
	}
	return between
}

// excess is by how much the loss of a team is above that in FP32.
func (r *study) excess(t *team) float64 { return t.last/r.teams[0].last - 1 }

func (r *study) lossGoal() report.Goal {
	worst := 0.0
	for _, t := range r.teams[1:] {
		worst = max(worst, math.Abs(r.excess(t)))
	}
	return report.NewGoal(fmt.Sprintf("Training with %d workers: the largest distance of a loss from that in FP32", r.team),
		"at most 1 %", report.Percent(worst), worst <= lossAllowed)
}

func (r *study) findings() []report.Finding {
	n := r.largest()
	at := func(k kind, w way) *world { return r.world(k, n, w) }
	var losses string
	for i, t := range r.teams[1:] {
		if i > 0 {
			losses += ", "
		}
		losses += fmt.Sprintf("%s %+.2f %%", divisionNames[t.way.division], 100*r.excess(t))
	}
	var sums string
	for i, size := range r.scope.worlds {
		if i > 0 {
			sums += ", "
		}
		sums += fmt.Sprintf("%s with %d", report.Percent(r.world(alike, size, pre).err), size)
	}
	overflows, underflows := at(sequences, post), at(sequences, pre)
	best := math.Inf(1)
	for division := range divisionNames {
		best = min(best, at(alike, way{true, train.Division(division)}).err)
	}
	worst := 0.0
	for _, t := range r.teams[1:] {
		worst = max(worst, math.Abs(r.excess(t)))
	}
	return []report.Finding{
		report.NewFinding(fmt.Sprintf("With %d workers of %s, %s of the nonzero values underflow divided before, %s by root, %s by the automatic factor, %s divided after; %s, %s, %s and %s of values and sums overflow.",
			n, sequences.name, report.Percent(underflows.underflow()), report.Percent(at(sequences, root).underflow()), report.Percent(at(sequences, auto).underflow()), report.Percent(overflows.underflow()),
			report.Percent(underflows.overflow()), report.Percent(at(sequences, root).overflow()), report.Percent(at(sequences, auto).overflow()), report.Percent(overflows.overflow()))),
		report.NewFinding(fmt.Sprintf("The mean is off by %s divided after, %s by root, %s before and %s automatically; when all workers have the same, by %s, %s, %s and %s.",
			report.Percent(overflows.err), report.Percent(at(sequences, root).err), report.Percent(underflows.err), report.Percent(at(sequences, auto).err),
			report.Percent(at(alike, post).err), report.Percent(at(alike, root).err), report.Percent(at(alike, pre).err), report.Percent(at(alike, auto).err)),
			report.If(overflows.err > underflows.err,
				"Dividing after, which overflows, costs more than dividing before, which underflows: what overflows are the largest values.",
				"Dividing after costs no more than dividing before.")),
		report.NewFinding(fmt.Sprintf("From 16 to 32 times a value on, the value is at most half a step of E4M3, and adding it to a sum changes nothing. Divided before, gradients that are all the same are off by %s workers.", sums),
			report.If(best > 0.25,
				fmt.Sprintf("No division saves the sum of %d workers: the least error of all is %s.", n, report.Percent(best)),
				fmt.Sprintf("The least error of all divisions with %d workers is %s.", n, report.Percent(best)))),
		report.NewFinding(fmt.Sprintf("The automatic factor ends at %.3g for %d workers with %s, and at %.3g when all have the same (medians of tensors; 1/n is %.3g, 1/√n %.3g). It moves by halves, so it may be half of what would do.",
			at(sequences, auto).factor, n, sequences.name, at(alike, auto).factor, 1/float64(n), 1/math.Sqrt(float64(n))),
			report.If(at(alike, auto).factor < at(sequences, auto).factor,
				"The more gradients agree, the smaller it must be.",
				"That gradients agree has not made it smaller.")),
		report.NewFinding(fmt.Sprintf("A worker sends %.4f bytes a value in FP8 with a shared scale, against 4.", underflows.bytes(r.run.Model.Params()))),
		report.NewFinding(fmt.Sprintf("After %d steps with %d workers the loss is %.3f in FP32; in FP8 it differs by: %s. The automatic factor shrinks only after an overflow.", r.teamSteps, r.team, r.teams[0].last, losses),
			report.If(worst <= lossAllowed, "All ways train about as well as FP32.", "Not all ways train as well as FP32.")),
	}
}
