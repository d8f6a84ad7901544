// Package parity asks how far FP8 training is from that of BF16 and FP32: by its loss as far
// as that can tell, and by its gradients.
package parity

import (
	"context"
	_ "embed"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
)

//go:embed declaration.toml
var declarationFile []byte

// declared is what goals are judged by.
var declared = declaration.OnUse(declarationFile)

// Experiment is octavo lab parity.
var Experiment = lab.Experiment{
	Name:  "parity",
	Title: "Does FP8 training lose anything, and would this show it?",
	Claim: "With fine-grained scales, 1x128 for activations and gradients and 128x128 " +
		"for weights, E4M3 throughout and amax just in time, the loss of FP8 training stays within " +
		"0.25 % of BF16 training (DeepSeek-V3, arXiv 2412.19437, section 3.3 and appendix B.1).",
	Declaration: declared,
	Measure:     measure,
}

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	s := studyOf(o)
	r := &results{study: s, seeds: make([]found, lab.Pick(o, 8, 2, 2))}
	if o.Activations != nil {
		var err error
		if r.real, err = realWidths(o.Activations); err != nil {
			return nil, err
		}
	}
	p.Expect(int64(len(r.seeds)) * s.work())
	do := func(ctx context.Context, i, workers int) (err error) {
		r.seeds[i], err = s.seed(ctx, o, p, o.Seed+uint64(i), workers)
		return err
	}
	if err := training.SideBySide(ctx, o, len(r.seeds), do); err != nil {
		return nil, err
	}
	r.weights = r.seeds[0].weights
	return r.report(), nil
}
