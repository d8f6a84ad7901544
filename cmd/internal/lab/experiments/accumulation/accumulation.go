package accumulation

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Experiment is octavo lab accumulation.
var Experiment = lab.Experiment{
	Name:  "accumulation",
	Title: "Products of long K: are 14 bits enough, and does promotion mend it?",
	Claim: "Hopper's tensor cores keep about 14 bits while they add, so that for K = 4096 the largest relative error is nearly 2 %; " +
		"adding partial sums in FP32 every 128 products mends it (DeepSeek-V3, arXiv 2412.19437, section 3.3.2). " +
		"What is cut off is cut toward zero, which makes sums of one sign too small.",
	Measure: measure,
}

// operandKind is a distribution of operands.
type operandKind struct {
	name   string
	values func(rows, cols int, seed uint64) []float32
}

var (
	bell    = operandKind{"normal", bellValues}
	uniform = operandKind{"uniform [0, 1)", uniformValues}
)

func bellValues(rows, cols int, seed uint64) []float32 {
	return oracle.Generator{Pattern: oracle.Bell, Rows: rows, Cols: cols, Seed: seed}.Values()
}

func uniformValues(rows, cols int, seed uint64) []float32 {
	random := rand.New(rand.NewPCG(seed, 0))
	values := make([]float32, rows*cols)
	for i := range values {
		values[i] = random.Float32()
	}
	return values
}

// adder is a way to add the products of a dot product.
type adder struct {
	name     string
	multiply func(ctx context.Context, c []float32, a, b *tensor.Tensor, workers int) error
}

func adders() []adder {
	predict := func(k oracle.Kernel) func(context.Context, []float32, *tensor.Tensor, *tensor.Tensor, int) error {
		return func(ctx context.Context, c []float32, a, b *tensor.Tensor, workers int) error {
			return oracle.Predict(ctx, c, nil, a, b, k, oracle.Options{Workers: workers})
		}
	}
	return []adder{
		{"Hopper, no promotion", predict(oracle.Kernel{Model: oracle.HopperWGMMA()})},
		{"Hopper, every 128", predict(oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128})},
		{"Blackwell tcgen05", predict(oracle.Kernel{Model: oracle.BlackwellTCGen05()})},
		{"FP32, octavo's order", func(ctx context.Context, c []float32, a, b *tensor.Tensor, workers int) error {
			return gemm.Multiply(ctx, c, a, b, gemm.Options{Workers: workers})
		}},
	}
}

// deviation is how far results are from the exact ones. Where sums cancel a relative
// error has no bound, and the more results there are the larger is the largest; so it
// is taken from groups of a size.
type deviation struct {
	median   float64 // |error| / |exact|
	ofSixty  float64 // the largest of each 60 results; the median over groups
	bias     float64 // sum of errors / sum of |exact|, above 0 where results are too large
	root     float64 // root mean square of errors over that of exact results
	tooSmall float64 // share of results that are nearer to zero than the exact ones
}

const groupOf = 60

// deviationOf leaves out exact zeros, which have no relative error.
func deviationOf(got, exact []float32) (d deviation) {
	var relative []float64
	var errors, magnitudes, errorSquares, squares float64
	for i, want := range exact {
		magnitude := math.Abs(float64(want))
		if magnitude == 0 {
			continue
		}
		e := math.Copysign(1, float64(want)) * (float64(got[i]) - float64(want))
		relative = append(relative, math.Abs(e)/magnitude)
		if e < 0 {
			d.tooSmall++
		}
		errors += e
		magnitudes += magnitude
		errorSquares += e * e
		squares += magnitude * magnitude
	}
	d.tooSmall /= float64(len(relative))
	d.bias, d.root = errors/magnitudes, math.Sqrt(errorSquares/squares)
	d.ofSixty = statistics.Median(largestOfGroups(relative, groupOf))
	d.median = statistics.Median(relative)
	return d
}

// largestOfGroups returns the largest of each n values; a rest that is no group is
// left out.
func largestOfGroups(values []float64, n int) (largest []float64) {
	for ; len(values) >= n; values = values[n:] {
		largest = append(largest, slices.Max(values[:n]))
	}
	return largest
}

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	lengths := lab.Pick(o, []int{128, 512, 1024, 2048, 4096, 8192, 16384}, []int{128, 512, 4096})
	side := lab.Pick(o, 64, 32)
	kinds := []operandKind{bell, uniform}
	p.Expect(len(lengths) * len(kinds))
	a := newAccumulations()
	for _, kind := range kinds {
		for _, k := range lengths {
			if err := a.measure(ctx, kind, side, k, o); err != nil {
				return nil, err
			}
			if err := p.Done(ctx, fmt.Sprintf("%s, K = %d", kind.name, k)); err != nil {
				return nil, err
			}
		}
	}
	return a.report(side, lengths), nil
}

// accumulations are the deviations of all adders.
type accumulations struct {
	table report.Table
	found map[place]deviation
}

type place struct {
	kind, adder string
	k           int
}

func newAccumulations() *accumulations {
	return &accumulations{
		table: report.Table{
			Name:    "errors",
			Title:   "Distance from the exact product, relative to it",
			Columns: []string{"operands", "adder", "K", "median %", "largest of 60 %", "bias %", "root mean square %", "too small %"},
		},
		found: make(map[place]deviation),
	}
}

// measure multiplies two matrices of side rows, [side, k], in every way.
func (a *accumulations) measure(ctx context.Context, kind operandKind, side, k int, o lab.Options) error {
	var operands [2]*tensor.Tensor
	for i := range operands {
		operands[i] = &tensor.Tensor{Name: "operand", Shape: []int{side, k}}
		values := kind.values(side, k, 2*o.Seed+uint64(i))
		recipe := scaling.TECurrent.Recipe(scaling.Input)
		if err := scaling.Quantize(ctx, operands[i], values, scaling.Quantizer{Recipe: recipe}); err != nil {
			return err
		}
	}
	exact, got := make([]float32, side*side), make([]float32, side*side)
	if err := oracle.Exact(ctx, exact, operands[0], operands[1], oracle.Options{Workers: o.Workers}); err != nil {
		return err
	}
	for _, way := range adders() {
		if err := way.multiply(ctx, got, operands[0], operands[1], o.Workers); err != nil {
			return err
		}
		d := deviationOf(got, exact)
		a.found[place{kind.name, way.name, k}] = d
		a.table.Add(kind.name, way.name, k, 100*d.median, 100*d.ofSixty, 100*d.bias, 100*d.root, 100*d.tooSmall)
	}
	return nil
}

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
				report.Percent(mended.bias), math.Abs(mended.bias) < 1e-3),
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
			a.chart("Normal operands: median relative error", "percent", bell, lengths, func(d deviation) float64 { return 100 * d.median }),
			a.chart("Operands from [0, 1): mean relative error toward zero", "percent", uniform, lengths, func(d deviation) float64 { return -100 * d.bias }),
		},
		Tables: []report.Table{a.table},
	}
}

// chart shows a figure of all adders over K.
func (a *accumulations) chart(title, unit string, kind operandKind, lengths []int, figure func(deviation) float64) chart.Chart {
	c := chart.Chart{Title: title, X: "K", Y: unit, LogX: true, LogY: true}
	for _, way := range adders() {
		s := chart.Series{Name: way.name, Mark: chart.Joined}
		for _, k := range lengths {
			s.Points = append(s.Points, chart.Point{X: float64(k), Y: figure(a.found[place{kind.name, way.name, k}])})
		}
		c.Series = append(c.Series, s)
	}
	return c
}
