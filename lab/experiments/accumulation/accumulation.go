// Package accumulation asks what the accumulators of tensor cores lose in long products.
package accumulation

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
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
	Declaration: declared,
	Measure:     measure,
}

//go:embed declaration.toml
var declarationFile []byte

var declared = declaration.OnUse(declarationFile)

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	lengths := lab.Pick(o, []int{128, 512, 1024, 2048, 4096, 8192, 16384}, []int{128, 512, 1024, 2048, 4096, 8192, 16384}, []int{128, 512, 4096})
	side, seeds := lab.Pick(o, 64, 64, 32), lab.Pick(o, 12, 3, 2)
	kinds := []operandKind{bell, uniform}
	var products int64 // of one result
	for _, k := range lengths {
		products += int64(k)
	}
	p.Expect(products * int64(len(kinds)*seeds))
	a := newAccumulations()
	for seed := range seeds {
		for _, kind := range kinds {
			for _, k := range lengths {
				if err := a.measure(ctx, kind, side, k, o.Seed+uint64(seed), o.Workers); err != nil {
					return nil, err
				}
				if err := p.Done(ctx, fmt.Sprintf("seed %d, %s, K = %d", o.Seed+uint64(seed), kind.name, k), int64(k)); err != nil {
					return nil, err
				}
			}
		}
	}
	return a.report(o.Seed, side, lengths), nil
}

// accumulations are the deviations of all adders, one of each seed: results of one product
// have operands in common, those of two seeds have none.
type accumulations struct {
	found map[place][]deviation
}

type place struct {
	kind, adder string
	k           int
}

func newAccumulations() *accumulations { return &accumulations{found: make(map[place][]deviation)} }

// measure multiplies two matrices of side rows, [side, k], in every way.
func (a *accumulations) measure(ctx context.Context, kind operandKind, side, k int, seed uint64, workers int) error {
	var operands [2]*tensor.Tensor
	for i := range operands {
		operands[i] = &tensor.Tensor{Name: "operand", Shape: []int{side, k}}
		values := kind.values(side, k, 2*seed+uint64(i))
		recipe := scaling.TECurrent.Recipe(scaling.Input)
		if err := scaling.Quantize(ctx, operands[i], values, scaling.Quantizer{Recipe: recipe}); err != nil {
			return err
		}
	}
	exact, got := make([]float32, side*side), make([]float32, side*side)
	if err := oracle.Exact(ctx, exact, operands[0], operands[1], oracle.Options{Workers: workers}); err != nil {
		return err
	}
	for _, way := range adders() {
		if err := way.multiply(ctx, got, operands[0], operands[1], workers); err != nil {
			return err
		}
		at := place{kind.name, way.name, k}
		a.found[at] = append(a.found[at], deviationOf(got, exact))
	}
	return nil
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
		{unpromoted, predict(oracle.Kernel{Model: oracle.HopperWGMMA()})},
		{promoted, predict(oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128})},
		{"Blackwell tcgen05", predict(oracle.Kernel{Model: oracle.BlackwellTCGen05()})},
		{ownOrder, func(ctx context.Context, c []float32, a, b *tensor.Tensor, workers int) error {
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
