// Package moe asks whether a mixture of experts trains in FP8 as it does in BF16: by its
// loss, by how tokens are shared out among experts, and by what FP8 makes of each expert.
package moe

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

// Experiment is octavo lab moe.
var Experiment = lab.Experiment{
	Name:  "moe",
	Title: "Does a mixture of experts train in FP8 as in BF16?",
	Claim: "A mixture of experts with latent attention trains in FP8 within 0.25 % of BF16's loss, " +
		"its router in higher precision and its gradients in tiles of 1x128 (DeepSeek-V3, " +
		"arXiv 2412.19437, section 3.3 and appendix B); biases balance its experts without a loss " +
		"(arXiv 2408.15664).",
	Declaration: declared,
	Measure:     measure,
}

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	s := studyOf(o)
	r := &results{study: s, seeds: make([]found, lab.Pick(o, 16, 2, 2))}
	p.Expect(int64(len(r.seeds)) * s.work())
	seed := func(ctx context.Context, i, workers int) (err error) {
		r.seeds[i], err = s.seed(ctx, o, p, o.Seed+uint64(i), workers)
		return err
	}
	if err := training.SideBySide(ctx, o, len(r.seeds), seed); err != nil {
		return nil, err
	}
	return r.report(), nil
}
