// Package memory asks what moments and activations in 8 bits save and cost.
package memory

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
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
	Measure: measure,
}

// gapAllowed is how many percent a loss may be from that of all FP32.
const gapAllowed = 1

// economy is a way to save memory in FP8 training.
type economy struct {
	name        string
	moments     optim.Moments
	activations nn.ActivationFormat
}

// economies begin with none.
func economies() []economy {
	return []economy{
		{"all FP32", optim.Moments{}, nn.ActivationsFP32},
		{"moments BF16", optim.Moments{Format: optim.MomentsBF16}, nn.ActivationsFP32},
		{"moments E4M3 and E5M2", optim.Moments{Format: optim.MomentsFP8}, nn.ActivationsFP32},
		{"moments E4M3, expanded", optim.Moments{Format: optim.MomentsFP8Expanded}, nn.ActivationsFP32},
		{"activations FP8", optim.Moments{}, nn.ActivationsFP8},
		{"activations FP8, SwiGLU's too", optim.Moments{}, nn.ActivationsFP8SwiGLU},
	}
}

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	l, err := training.NewSetup(o, o.Seed, training.Setup{
		Steps: lab.Pick(o, 200, 200, 16), Batch: lab.Pick(o, 8, 8, 2), Seq: lab.Pick(o, 128, 128, 64),
		Rate: lab.Pick(o, 1e-3, 1e-3, 4e-3), Judged: lab.Pick(o, 16, 16, 4),
	})
	if err != nil {
		return nil, err
	}
	var jobs []training.Job
	for _, e := range economies() {
		config := training.Llama(lab.Pick(o, 96, 96, 32), lab.Pick(o, 4, 4, 1), l.Seq)
		training.FP8().Use(&config)
		config.Activations = e.activations
		jobs = append(jobs, training.Job{Name: e.name, Config: config, Seed: o.Seed, Setup: l, Moments: e.moments})
	}
	p.Expect(training.Work(jobs))
	curves, err := training.All(ctx, o, p, jobs)
	if err != nil {
		return nil, err
	}
	return newReport(curves, l), nil
}

func newReport(curves []training.Curve, l training.Setup) *report.Report {
	plain := curves[0]
	table := report.Table{
		Name: "bytes", Title: "Memory and loss of FP8 training",
		Columns: []string{"kept", "moments, bytes a parameter", "activations, bytes a token", "of all FP32 %", "loss, last tenth", "above all FP32 %"},
	}
	curvesTable := report.Table{Name: "curves", Raw: true, Columns: []string{"kept", "step", "loss"}}
	plot := chart.Chart{Title: "Training loss above that of all FP32", X: "step", Y: "percent", Zero: true, Smooth: true}
	var worst float64
	tokens := l.Batch * l.Seq
	for i, e := range economies() {
		c := curves[i]
		gap := 100 * (c.Last()/plain.Last() - 1)
		worst = max(worst, math.Abs(gap))
		table.Add(e.name, float64(c.MomentBytes)/float64(c.Params), c.Activations.Total()/tokens,
			100*float64(c.Activations.Total())/float64(plain.Activations.Total()), c.Last(), gap)
		s := chart.Series{Name: e.name, Dashed: e.activations == nn.ActivationsFP8}
		for step, loss := range c.Losses {
			curvesTable.Add(e.name, step, loss)
			s.Points = append(s.Points, chart.Point{X: float64(step), Y: 100 * (loss/plain.Losses[step] - 1)})
		}
		if i > 0 {
			plot.Series = append(plot.Series, s)
		}
	}
	fp8, expanded := curves[2], curves[3]
	kept, all := curves[4], curves[5]
	perParameter := func(c training.Curve) float64 { return float64(c.MomentBytes) / float64(c.Params) }
	left := func(c training.Curve) float64 {
		return float64(c.Activations.Total()) / float64(plain.Activations.Total())
	}
	same := sameLosses(kept, plain)
	return &report.Report{
		Goals: []report.Goal{
			report.NewGoal("Moments in FP8, scales included", "at most 2.2 bytes a parameter, of 8",
				fmt.Sprintf("%.2f, expanded %.2f", perParameter(fp8), perParameter(expanded)), perParameter(fp8) <= 2.2 && perParameter(expanded) <= 2.2),
			report.NewGoal("Losses with activations in FP8 (without SwiGLU's)", "the same bits as in FP32", same, same == "the same"),
			report.NewGoal("Largest gap in training loss of any way, last tenth of the steps", "within 1 %", fmt.Sprintf("%.2f %%", worst), worst < gapAllowed),
		},
		Findings: []report.Finding{
			report.NewFinding(fmt.Sprintf("Activations kept from the forward to the backward pass take %s of the memory in FP8, and %s with SwiGLU's inputs too.", report.Percent(left(kept)), report.Percent(left(all)))),
			report.NewFinding("What a linear layer keeps in FP8 is the operand that the product of its weight gradient multiplies anyway.",
				report.If(same == "the same",
					"So no loss changes in any bit.",
					fmt.Sprintf("So no loss should change in any bit, but losses are %s: that is a defect.", same))),
		},
		Limits: []string{
			fmt.Sprintf("One seed, %d parameters, %d steps: how much of a gap is the noise of rounding takes several seeds to tell, as octavo lab parity has them.", plain.Params, len(plain.Losses)),
			"The residual stream, queries, keys, values and logits stay in FP32 here; large models keep them in BF16, and their vocabulary weighs less.",
		},
		Charts: []chart.Chart{report.WithLimit(report.WithLimit(plot, "+1 %", gapAllowed), "-1 %", -gapAllowed)},
		Tables: []report.Table{table, curvesTable},
	}
}

// sameLosses says whether two runs had the same bits in every step.
func sameLosses(a, b training.Curve) string {
	for step, loss := range a.Losses {
		if loss != b.Losses[step] {
			return fmt.Sprintf("other from step %d on", step)
		}
	}
	return "the same"
}
