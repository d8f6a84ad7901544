// Package accumulation asks what the accumulators of tensor cores lose in long products.
package accumulation

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
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
