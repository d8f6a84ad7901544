// Package sensitivity asks which class of operators needs how much precision: each alone in
// FP8 and in BF16, by gradients and by loss, beside the order that practice assumes.
package sensitivity

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

// Experiment is octavo lab sensitivity.
var Experiment = lab.Experiment{
	Name:  "sensitivity",
	Title: "Which operators need more than FP8?",
	Claim: "Products of linear layers are robust and can be in FP8. Embedding, output head, norms " +
		"and attention are sensitive and are kept " +
		"in BF16 or FP32 (DeepSeek-V3, arXiv 2412.19437, section 3.3.1), and so is the residual " +
		"stream between them; " +
		"sums are FP32 (torch.amp of PyTorch).",
	Declaration: declared,
	Measure:     measure,
}

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	s := studyOf(o)
	r := &results{study: s, seeds: make([]found, lab.Pick(o, 8, 2, 2))}
	p.Expect(int64(len(r.seeds)) * s.work())
	seed := func(ctx context.Context, i, workers int) (err error) {
		r.seeds[i], err = s.seed(ctx, o, p, o.Seed+uint64(i), workers)
		return err
	}
	err := training.SideBySide(ctx, o, len(r.seeds), seed)
	if err != nil {
		return nil, err
	}
	for shape := range s.config.Shapes() {
		r.params = append(r.params, shape.Name)
	}
	return r.report(), nil
}
