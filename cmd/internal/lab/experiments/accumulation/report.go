package accumulation

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
)

func (a *accumulations) report(side int, lengths []int) *report.Report {
	const k = 4096
	at := func(kind operandKind, adder string) deviation { return a.found[place{kind.name, adder, k}] }
	plain, promoted := at(bell, "Hopper, no promotion"), at(bell, "Hopper, every 128")
	cut, mended, fp32 := at(uniform, "Hopper, no promotion"), at(uniform, "Hopper, every 128"), at(uniform, "FP32, octavo's order")
	first, block := a.found[place{bell.name, "Hopper, no promotion", lengths[0]}], a.found[place{uniform.name, "Hopper, no promotion", 128}]
	return &report.Report{
		Goals: []report.Goal{
			report.NewGoal("Normal operands, K = 4096, no promotion: largest relative error of 60 results (median of groups)", "2 % within a factor of 3",
				report.Percent(plain.ofSixty), plain.ofSixty > 0.02/3 && plain.ofSixty < 0.02*3),
			report.NewGoal("The same operands: median relative error with promotion every 128 over that without", "at most 0.2",
				fmt.Sprintf("%.2f", promoted.median/plain.median), promoted.median <= plain.median/5),
			report.NewGoal("Operands from [0, 1), K = 4096, no promotion: results that are too small", "all",
				report.Percent(cut.tooSmall), cut.tooSmall == 1),
			report.NewGoal("Their mean relative error", "about -7.5 %: from -6 to -9",
				report.Percent(cut.bias), cut.bias < -0.06 && cut.bias > -0.09),
			report.NewGoal("The same with promotion every 128", "within 0.1 %",
				report.Percent(mended.bias), math.Abs(mended.bias) < promotedBias),
			report.NewGoal("The same in FP32, in octavo's order", "within 0.0001 %",
				report.Percent(fp32.bias), math.Abs(fp32.bias) < 1e-6),
		},
		Findings: []report.Finding{
			report.NewFinding(fmt.Sprintf("Normal operands without promotion have a median error of %s at K = %d and of %s at K = 4096, where it is %s with promotion; in size (root mean square) errors are %s of the results there, against %s.",
				report.Percent(first.median), lengths[0], report.Percent(plain.median), report.Percent(promoted.median), report.Percent(plain.root), report.Percent(promoted.root)),
				report.If(plain.median > first.median, "Without promotion the error grows with K.", "It does not grow with K."),
				report.If(promoted.median < plain.median, "Promotion mends some of it.", "Promotion mends nothing.")),
			report.NewFinding(fmt.Sprintf("Sums of 128 products of operands from [0, 1) are off by %s on average, and sums of 4096 with promotion every 128 by %s.",
				report.Percent(block.bias), report.Percent(mended.bias)),
				report.If(block.bias*mended.bias > 0 && math.Abs(mended.bias) >= math.Abs(block.bias)/2,
					"Promotion cannot mend what is cut off inside 128 products: their error stays, with its sign.",
					"What is cut off inside 128 products does not stay.")),
		},
		Limits: []string{
			"A relative error has no bound where sums cancel, so that the largest of many results is larger than that of few, in every kind of arithmetic. Here the largest of 60 results is taken, and the median over all such groups.",
			fmt.Sprintf("Hopper and Blackwell are models. Hopper's gives every bit of the vectors that were published for single instructions from zero; chains of them, and Blackwell's tcgen05, follow descriptions. Products are %d x %d.", side, side),
		},
		Charts: []chart.Chart{
			a.chart("Normal operands: median relative error", "error, percent", bell, lengths, func(d deviation) float64 { return 100 * d.median }),
			a.chart("Operands from [0, 1): size of the mean relative error", "error, percent", uniform, lengths, func(d deviation) float64 { return 100 * math.Abs(d.bias) },
				chart.Reference{Name: "wanted with promotion", Value: 100 * promotedBias}),
		},
		Tables: []report.Table{a.table},
	}
}

// promotedBias is how far the mean may be off with promotion.
const promotedBias = 1e-3

// chart shows a figure of all adders over K.
func (a *accumulations) chart(title, unit string, kind operandKind, lengths []int, figure func(deviation) float64, lines ...chart.Reference) chart.Chart {
	c := chart.Chart{Title: title, X: "K, products in a sum", Y: unit, LogX: true, LogY: true, Lines: lines}
	for _, way := range adders() {
		s := chart.Series{Name: way.name, Mark: chart.Joined}
		for _, k := range lengths {
			s.Points = append(s.Points, chart.Point{X: float64(k), Y: figure(a.found[place{kind.name, way.name, k}])})
		}
		c.Series = append(c.Series, s)
	}
	return c
}
