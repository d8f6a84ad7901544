package accumulation

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

// Names of adders that goals are about.
const (
	unpromoted = "Hopper, no promotion"
	promoted   = "Hopper, every 128"
	ownOrder   = "FP32, octavo's order"
)

// longest is K of the goals.
const longest = 4096

// bySeed returns a figure of each seed.
func (a *accumulations) bySeed(kind operandKind, adder string, k int, figure func(deviation) float64) []float64 {
	return statistics.Each(a.found[place{kind.name, adder, k}], figure)
}

// mean returns the mean of a figure over the seeds.
func (a *accumulations) mean(kind operandKind, adder string, k int, figure func(deviation) float64) float64 {
	return statistics.Mean(a.bySeed(kind, adder, k, figure))
}

// Figures in percent.
func median(d deviation) float64  { return 100 * d.median }
func ofSixty(d deviation) float64 { return 100 * d.ofSixty }
func bias(d deviation) float64    { return 100 * d.bias }
func root(d deviation) float64    { return 100 * d.root }

func (a *accumulations) goals() []report.Goal {
	at := func(kind operandKind, adder string, figure func(deviation) float64) []float64 {
		return a.bySeed(kind, adder, longest, figure)
	}
	over := func(adder, other string) []float64 {
		return statistics.Ratios(at(bell, adder, median), at(bell, other, median))
	}
	return []report.Goal{
		declared().Judge("largest-error", at(bell, unpromoted, ofSixty)),
		declared().Judge("promotion", over(promoted, unpromoted)),
		declared().Judge("bias-promoted", at(uniform, promoted, bias)),
		declared().Judge("bias-own-order", at(uniform, ownOrder, bias)),
		declared().Judge("no-promotion-biased", at(uniform, unpromoted, bias)),
		declared().Judge("no-promotion-spread", over(unpromoted, ownOrder)),
	}
}

func (a *accumulations) report(seed uint64, side int, lengths []int) *report.Report {
	percent := func(kind operandKind, adder string, k int, figure func(deviation) float64) (float64, string) {
		x := a.mean(kind, adder, k, figure)
		return x, fmt.Sprintf("%.3g %%", x)
	}
	plain, plainText := percent(bell, unpromoted, longest, median)
	first, firstText := percent(bell, unpromoted, lengths[0], median)
	mended, mendedText := percent(bell, promoted, longest, median)
	_, plainRoot := percent(bell, unpromoted, longest, root)
	_, mendedRoot := percent(bell, promoted, longest, root)
	block, blockText := percent(uniform, unpromoted, 128, bias)
	kept, keptText := percent(uniform, promoted, longest, bias)
	return &report.Report{
		Goals: a.goals(),
		Findings: []report.Finding{
			report.NewFinding(fmt.Sprintf("Normal operands without promotion have a median error of %s at K = %d and of %s at K = 4096, where it is %s with promotion; in size (root mean square) errors are %s of the results there, against %s.",
				firstText, lengths[0], plainText, mendedText, plainRoot, mendedRoot),
				report.If(plain > first, "Without promotion the error grows with K.", "It does not grow with K."),
				report.If(mended < plain, "Promotion mends some of it.", "Promotion mends nothing.")),
			report.NewFinding(fmt.Sprintf("Sums of 128 products of operands from [0, 1) are off by %s on average, and sums of 4096 with promotion every 128 by %s.",
				blockText, keptText),
				report.If(block*kept > 0 && math.Abs(kept) >= math.Abs(block)/2,
					"Promotion cannot mend what is cut off inside 128 products: their error stays, with its sign.",
					"What is cut off inside 128 products does not stay.")),
		},
		Limits: []string{
			"A relative error has no bound where sums cancel, so that the largest of many results is larger than that of few, in every kind of arithmetic. Here the largest of 60 results is taken, and the median over all such groups.",
			fmt.Sprintf("Hopper and Blackwell are models. Hopper's gives every bit of the vectors that were published for single instructions from zero; chains of them, and Blackwell's tcgen05, follow descriptions. Products are %d x %d.", side, side),
		},
		Charts: []chart.Chart{
			a.chart("Normal operands: median relative error", "error, percent", bell, lengths, median),
			a.chart("Operands from [0, 1): size of the mean relative error", "error, percent", uniform, lengths, func(d deviation) float64 { return math.Abs(bias(d)) }),
		},
		Tables: []report.Table{a.means(lengths), a.seeds(seed, lengths)},
	}
}

// means is the table of means over the seeds.
func (a *accumulations) means(lengths []int) report.Table {
	of := func(figure func(deviation) float64) func(measured) []float64 {
		return func(p measured) []float64 { return a.bySeed(p.operandKind, p.adder, p.k, figure) }
	}
	return report.Fill(report.Table{
		Name: "errors", Title: "Distance from the exact product, relative to it: means over seeds, and the standard error of the bias",
	}, slices.Collect(a.places(lengths)),
		report.Cell("operands", func(p measured) string { return p.name }), report.Cell("adder", func(p measured) string { return p.adder }),
		report.Cell("K", func(p measured) int { return p.k }), report.Cell("seeds", func(p measured) int { return len(of(bias)(p)) }),
		report.Mean("median %", of(median)), report.Mean("largest of 60 %", of(ofSixty)),
		report.Mean("bias %", of(bias)), report.StandardError("± %", of(bias)),
		report.Mean("root mean square %", of(root)), report.Mean("too small %", of(func(d deviation) float64 { return 100 * d.tooSmall })))
}

// seeds is the table of all seeds, from the first on.
func (a *accumulations) seeds(seed uint64, lengths []int) report.Table {
	t := report.Table{
		Name: "seeds", Title: "Each seed", Raw: true,
		Columns: []string{"operands", "adder", "K", "seed", "median %", "largest of 60 %", "bias %", "root mean square %", "too small %"},
	}
	for p := range a.places(lengths) {
		for i, d := range a.found[place{p.name, p.adder, p.k}] {
			t.Add(p.name, p.adder, p.k, seed+uint64(i), median(d), ofSixty(d), bias(d), root(d), 100*d.tooSmall)
		}
	}
	return t
}

// measured is what one row of a table is about.
type measured struct {
	operandKind
	adder string
	k     int
}

// places yields all that was measured, in the order of the tables.
func (a *accumulations) places(lengths []int) func(yield func(measured) bool) {
	return func(yield func(measured) bool) {
		for _, kind := range []operandKind{bell, uniform} {
			for _, k := range lengths {
				for _, way := range adders() {
					if !yield(measured{kind, way.name, k}) {
						return
					}
				}
			}
		}
	}
}

// chart shows a figure of all adders over K.
func (a *accumulations) chart(title, unit string, kind operandKind, lengths []int, figure func(deviation) float64) chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: title, X: "K, products in a sum", Y: unit, LogX: true, LogY: true}}
	for _, way := range adders() {
		for _, k := range lengths {
			p.Add(chart.Series{Name: way.name, Mark: chart.Joined}, k, a.bySeed(kind, way.name, k, figure)...)
		}
	}
	return p.Chart
}
