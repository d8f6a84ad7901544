package reduction

import (
	"fmt"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

// FP8-LM's figures, which are reproduced and not measured.
const (
	publishedThreshold = 1e-5 // of values that saturate, above which the factor is halved
	publishedDoubling  = 1000 // steps in which it doubles otherwise
)

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

func (s *study) report() *report.Report {
	goals := s.goals()
	return &report.Report{
		Goals:    goals,
		Findings: s.findings(goals),
		Limits: []string{
			fmt.Sprintf("Published are the rule of the automatic factor (halved where more than %g %% of the values saturate, a figure of secondary sources; otherwise doubled in %d steps), which the library has and its tests show, and that values divided before underflow, divided after overflow. FP8-LM shows that on models of billions of parameters; the shares here are our own simulation, on half a million.", 100*publishedThreshold, publishedDoubling),
			"Workers are simulated: their gradients, those of one sequence each or all the same, are added one after the other, and each partial sum is rounded to E4M3. Rings do that too; trees have shorter chains.",
			"Large batches are between the two kinds: the more sequences a worker has, the more alike are the gradients. All the same is the limit, and made, not met. There values divided before do not overflow, and sums of more than 16 to 32 equal values stop growing, whatever the gradients: that follows from the format, is tested in the code, and is no goal.",
			fmt.Sprintf("Factors adapted over %d steps, in which they can be halved but hardly grow. In FP8-LM gradients have been in FP8 once before.", s.steps),
			fmt.Sprintf("Losses are of %d steps with %d workers, and models that have hardly begun to learn. The range of FP16, in which large sums overflow without FP8, is not in the library.", s.teamSteps, s.team),
		},
		Charts: []chart.Chart{
			s.worldChart("Underflow in FP8: nonzero values that become 0", underflow),
			s.worldChart("Overflow in FP8: values and sums that saturate", overflow,
				chart.Reference{Name: "FP8-LM's threshold", Value: 100 * publishedThreshold}),
			s.errorChart(sequences), s.errorChart(alike),
			s.factorChart(), s.lossChart(),
		},
		Tables: []report.Table{s.worldTable(), s.teamTable(), s.seedTable(), s.tensorTable(), s.factorTable(), s.curves().Table("losses-steps", "seed", "reduction", "step", "loss")},
	}
}

// each says a figure of the divisions of FP8 in one world, in the order of divisionNames.
func (s *study) each(k kind, size int, figure func(*world) float64) string {
	var all []string
	for _, w := range ways() {
		if w.fp8 {
			all = append(all, report.Percent(s.mean(k, size, w, figure))+" "+divisionNames[w.division])
		}
	}
	return strings.Join(all, ", ")
}

// more says by how much the mean is further off one way than another, with its interval.
func (s *study) more(a, b way) string {
	of := func(w way) []float64 {
		return s.of(sequences, s.largest(), w, func(w *world) float64 { return 100 * w.err })
	}
	return report.Interval(statistics.Differences(of(a), of(b)), "%+.3g", "")
}

func (s *study) findings(goals []report.Goal) []report.Finding {
	n := s.largest()
	at := func(k kind, w way, figure func(*world) float64) float64 { return s.mean(k, n, w, figure) }
	var losses, sums []string
	for _, k := range teamKinds[1:] {
		excess := s.bySeed(func(of *sample) float64 { return of.excess(of.teamOf(k.name)) })
		losses = append(losses, k.name+" "+report.Interval(excess, "%+.2f", " %"))
	}
	for _, size := range s.scope.worlds {
		sums = append(sums, fmt.Sprintf("%s with %d", report.Percent(s.mean(alike, size, pre, meanError)), size))
	}
	first := s.samples[0]
	return []report.Finding{
		report.NewFinding(fmt.Sprintf("With %d workers of %s, of the nonzero values underflow %s; of values and sums overflow %s; means of the seeds. As declared: %s.",
			n, sequences.name, s.each(sequences, n, underflow), s.each(sequences, n, overflow),
			report.Outcomes(goals, "post-overflows", "auto-overflows", "auto-underflows", "dense-pre", "dense-root"))),
		report.NewFinding(fmt.Sprintf("The mean is off by %s; when all workers have the same, by %s. Divided after it is off by %s percent of its length more than divided before. As declared: %s.",
			s.each(sequences, n, meanError), s.each(alike, n, meanError), s.more(post, pre),
			report.Outcomes(goals, "auto-error-pre", "auto-error-post", "alike-post"))),
		report.NewFinding(fmt.Sprintf("From 16 to 32 times a value on, the value is at most half a step of E4M3, and adding it to a sum changes nothing. Divided before, gradients that are all the same are off by %s workers.", strings.Join(sums, ", "))),
		report.NewFinding(fmt.Sprintf("The automatic factor ends at %.3g for %d workers with %s, and at %.3g when all have the same (medians of tensors; 1/n is %.3g, 1/√n %.3g). It moves by halves, so it may be half of what would do.",
			at(sequences, auto, factor), n, sequences.name, at(alike, auto, factor), 1/float64(n), 1/math.Sqrt(float64(n)))),
		report.NewFinding(fmt.Sprintf("A worker sends %.4f bytes a value in FP8 with a shared scale, against 4.", first.world(sequences, n, pre).bytes(first.run.Model.Params()))),
		report.NewFinding(fmt.Sprintf("After %d steps with %d workers the loss in FP8 differs from that in FP32, %.3f, by: %s. The last begins with a factor of 2^-16, from which it takes %d steps for each doubling.",
			s.teamSteps, s.team, statistics.Mean(s.bySeed(func(of *sample) float64 { return of.teams[0].last() })), strings.Join(losses, ", "), publishedDoubling)),
	}
}
