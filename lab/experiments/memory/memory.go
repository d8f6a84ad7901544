// Package memory asks what moments and activations in 8 bits save and cost.
package memory

import (
	"context"
	_ "embed"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

// Experiment is octavo lab memory.
var Experiment = lab.Experiment{
	Name:  "memory",
	Title: "What do 8 bits save in memory, and what does that cost?",
	Claim: "AdamW's moments can be kept in FP8, the first in E4M3 and the second, which needs more range, in E5M2 (Fishman et al., arXiv 2409.12517), " +
		"or both in E4M3 after range expansion (COAT, arXiv 2410.19313); in BF16 (DeepSeek-V3, arXiv 2412.19437, section 3.3.2). " +
		"Activations for the backward pass can be kept in FP8 (DeepSeek-V3, section 3.3.3). Training hardly notices.",
	Declaration: declared,
	Measure:     measure,
}

//go:embed declaration.toml
var declarationFile []byte

var declared = declaration.OnUse(declarationFile)

// economy is a way to save memory in FP8 training.
type economy struct {
	name        string
	goal        string // what is declared of its loss; none for what it is compared with
	moments     optim.Moments
	activations nn.ActivationFormat
	rate        float64 // times that of the others; 0: 1
}

// economies begin with none. The last saves nothing, and has to be seen.
func economies() []economy {
	return []economy{
		{name: "all FP32"},
		{name: "moments BF16", goal: "moments-bf16", moments: optim.Moments{Format: optim.MomentsBF16}},
		{name: "moments E4M3 and E5M2", goal: "moments-fp8", moments: optim.Moments{Format: optim.MomentsFP8}},
		{name: "moments E4M3, expanded", goal: "moments-expanded", moments: optim.Moments{Format: optim.MomentsFP8Expanded}},
		{name: "activations FP8", activations: nn.ActivationsFP8},
		{name: "activations FP8, SwiGLU's too", goal: "activations-swiglu", activations: nn.ActivationsFP8SwiGLU},
		{name: "moments E4M3 and E5M2, one scale a tensor", goal: "moments-tensor", moments: optim.Moments{Format: optim.MomentsFP8, Block: 1 << 20}},
		{name: "control: all FP32, a rate lower by a fifth", goal: "lower-rate", rate: 0.8},
	}
}

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	seeds := lab.Pick(o, 24, 2, 2)
	setup := training.Setup{
		Steps: lab.Pick(o, 200, 200, 16), Batch: lab.Pick(o, 8, 8, 2), Seq: lab.Pick(o, 64, 64, 64),
		Rate: lab.Pick(o, 2e-3, 2e-3, 4e-3), Judged: lab.Pick(o, 16, 16, 4),
	}
	var jobs []training.Job
	for i := range seeds {
		seed := o.Seed + uint64(i)
		of, err := training.NewSetup(o, seed, setup)
		if err != nil {
			return nil, err
		}
		for _, e := range economies() {
			config := training.Llama(lab.Pick(o, 64, 64, 32), lab.Pick(o, 2, 2, 1), of.Seq)
			training.FP8().Use(&config)
			config.Activations = e.activations
			own := of
			if e.rate > 0 {
				own.Rate *= e.rate
			}
			jobs = append(jobs, training.Job{Name: e.name, Config: config, Seed: seed, Setup: own, Moments: e.moments})
		}
	}
	p.Expect(training.Work(jobs))
	curves, err := training.All(ctx, o, p, jobs)
	if err != nil {
		return nil, err
	}
	return newReport(curves, setup, o.Seed), nil
}
