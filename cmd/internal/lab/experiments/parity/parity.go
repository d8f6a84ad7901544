// Package parity asks how far the loss of FP8 training is from that of BF16 and FP32.
package parity

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
)

// Experiment is octavo lab parity.
var Experiment = lab.Experiment{
	Name:  "parity",
	Title: "Does FP8 training lose anything?",
	Claim: "With fine-grained scales, 1x128 for activations and gradients and 128x128 for weights, E4M3 throughout and amax just in time, " +
		"the loss of FP8 training stays within 0.25 % of BF16 training (DeepSeek-V3, arXiv 2412.19437, section 3.3 and appendix B.1).",
	Measure: measure,
}

// gradeOfGap is DeepSeek-V3's.
const gradeOfGap = 0.25 // percent

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	c := &comparison{ways: []training.Arithmetic{training.FP32(), training.BF16(), training.FP8()}, dim: lab.Pick(o, 128, 128, 32), layers: lab.Pick(o, 4, 4, 1)}
	form := training.Setup{
		Steps: lab.Pick(o, 300, 300, 20), Batch: lab.Pick(o, 8, 8, 2), Seq: lab.Pick(o, 128, 128, 64),
		Rate: lab.Pick(o, 1e-3, 1e-3, 4e-3), Judged: lab.Pick(o, 32, 32, 4),
	}
	var jobs []training.Job
	for i := range lab.Pick(o, 8, 8, 2) {
		seed := o.Seed + uint64(i)
		l, err := training.NewSetup(o, seed, form)
		if err != nil {
			return nil, err
		}
		c.seeds = append(c.seeds, seed)
		for _, way := range c.ways {
			config := training.Llama(c.dim, c.layers, form.Seq)
			way.Use(&config)
			jobs = append(jobs, training.Job{Name: fmt.Sprintf("%s, seed %d", way.Name, seed), Config: config, Seed: seed, Setup: l})
		}
	}
	p.Expect(training.Work(jobs))
	var err error
	if c.curves, err = training.All(ctx, o, p, jobs); err != nil {
		return nil, err
	}
	c.setup = form
	return c.report(), nil
}

// comparison is of ways to multiply, over several seeds.
type comparison struct {
	setup       training.Setup
	dim, layers int
	ways        []training.Arithmetic
	seeds       []uint64
	curves      []training.Curve // by seed, and for each by way
}

func (c *comparison) curve(seed, way int) training.Curve { return c.curves[seed*len(c.ways)+way] }

// gap is by how many percent one loss is above another, for each seed.
func (c *comparison) gap(way, over int, loss func(training.Curve) float64) (percents []float64) {
	for seed := range c.seeds {
		percents = append(percents, 100*(loss(c.curve(seed, way))/loss(c.curve(seed, over))-1))
	}
	return percents
}

// The ways of parity.
const (
	fp32Way = iota
	bf16Way
	fp8Way
)
