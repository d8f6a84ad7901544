package reduction

import (
	"fmt"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
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
	return &report.Report{
		Goals:    s.goals(),
		Findings: s.findings(),
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
		Tables: []report.Table{s.worldTable(), s.teamTable(), s.seedTable(), s.tensorTable(), s.factorTable(), s.lossTable()},
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

func (s *study) findings() []report.Finding {
	n := s.largest()
	at := func(k kind, w way, figure func(*world) float64) float64 { return s.mean(k, n, w, figure) }
	var losses, sums []string
	for _, k := range teamKinds[1:] {
		excess := s.bySeed(func(of *sample) float64 { return of.excess(of.teamOf(k.name)) })
		losses = append(losses, fmt.Sprintf("%s %+.2f %%", k.name, statistics.Mean(excess)))
	}
	for _, size := range s.scope.worlds {
		sums = append(sums, fmt.Sprintf("%s with %d", report.Percent(s.mean(alike, size, pre, meanError)), size))
	}
	best := math.Inf(1)
	for _, w := range ways() {
		if w.fp8 {
			best = min(best, at(alike, w, meanError))
		}
	}
	first := s.samples[0]
	return []report.Finding{
		report.NewFinding(fmt.Sprintf("With %d workers of %s, of the nonzero values underflow %s; of values and sums overflow %s.",
			n, sequences.name, s.each(sequences, n, underflow), s.each(sequences, n, overflow))),
		report.NewFinding(fmt.Sprintf("The mean is off by %s; when all workers have the same, by %s.",
			s.each(sequences, n, meanError), s.each(alike, n, meanError)),
			report.If(at(sequences, post, meanError) > at(sequences, pre, meanError),
				"Dividing after, which overflows, costs more than dividing before, which underflows: what overflow are the largest values.",
				"Dividing after costs no more than dividing before.")).AtLength(),
		report.NewFinding(fmt.Sprintf("From 16 to 32 times a value on, the value is at most half a step of E4M3, and adding it to a sum changes nothing. Divided before, gradients that are all the same are off by %s workers.", strings.Join(sums, ", ")),
			report.If(best > 0.25,
				fmt.Sprintf("No division saves the sum of %d workers: the least error of all is %s.", n, report.Percent(best)),
				fmt.Sprintf("The least error of all divisions with %d workers is %s.", n, report.Percent(best)))),
		report.NewFinding(fmt.Sprintf("The automatic factor ends at %.3g for %d workers with %s, and at %.3g when all have the same (medians of tensors; 1/n is %.3g, 1/√n %.3g). It moves by halves, so it may be half of what would do.",
			at(sequences, auto, factor), n, sequences.name, at(alike, auto, factor), 1/float64(n), 1/math.Sqrt(float64(n))),
			report.If(at(alike, auto, factor) < at(sequences, auto, factor),
				"The more gradients agree, the smaller it must be.",
				"That gradients agree has not made it smaller.")).AtLength(),
		report.NewFinding(fmt.Sprintf("A worker sends %.4f bytes a value in FP8 with a shared scale, against 4.", first.world(sequences, n, pre).bytes(first.run.Model.Params()))),
		report.NewFinding(fmt.Sprintf("After %d steps with %d workers the loss in FP8 differs from that in FP32, %.3f, by: %s. The last begins with a factor of 2^-16, from which it takes %d steps for each doubling.",
			s.teamSteps, s.team, statistics.Mean(s.bySeed(func(of *sample) float64 { return of.teams[0].last() })), strings.Join(losses, ", "), publishedDoubling)),
	}
}
