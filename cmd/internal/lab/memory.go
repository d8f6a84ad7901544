package lab

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

var memory = Experiment{
	Name:  "memory",
	Title: "What 8 bits save in memory, and what that costs",
	Claim: "AdamW's moments can be kept in FP8, the first in E4M3 and the second, which needs more range, in E5M2 (Fishman et al., arXiv 2409.12517), " +
		"or both in E4M3 after range expansion (COAT, arXiv 2410.19313); in BF16 (DeepSeek-V3, arXiv 2412.19437, section 3.3.2). " +
		"Activations for the backward pass can be kept in FP8 (DeepSeek-V3, section 3.3.3). Training hardly notices.",
	run: runMemory,
}

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

func runMemory(ctx context.Context, o Options, p *Progress) (*Report, error) {
	l, err := newLesson(o, o.Seed, lesson{
		steps: pick(o, 200, 16), batch: pick(o, 8, 2), seq: pick(o, 128, 64),
		rate: pick(o, 1e-3, 4e-3), judged: pick(o, 16, 4),
	})
	if err != nil {
		return nil, err
	}
	var jobs []job
	for _, e := range economies() {
		config := llama(pick(o, 96, 32), pick(o, 4, 1), l.seq)
		inFP8().use(&config)
		config.Activations = e.activations
		jobs = append(jobs, job{name: e.name, config: config, seed: o.Seed, lesson: l, moments: e.moments})
	}
	p.total(totalSteps(jobs))
	curves, err := trainAll(ctx, o, p, jobs)
	if err != nil {
		return nil, err
	}
	return newMemoryReport(curves, l), nil
}

func newMemoryReport(curves []curve, l lesson) *Report {
	plain := curves[0]
	table := Table{
		Name: "bytes", Title: "Memory and loss of FP8 training",
		Columns: []string{"kept", "moments, bytes a parameter", "activations, bytes a token", "of all FP32 %", "loss, last tenth", "above all FP32 %"},
	}
	curvesTable := Table{Name: "curves", Raw: true, Columns: []string{"kept", "step", "loss"}}
	plot := chart.Chart{Title: "Training loss above that of all FP32", X: "step", Y: "percent"}
	var worst float64
	tokens := l.batch * l.seq
	for i, e := range economies() {
		c := curves[i]
		gap := 100 * (c.last()/plain.last() - 1)
		worst = max(worst, math.Abs(gap))
		table.add(e.name, float64(c.momentBytes)/float64(c.params), c.activations.Total()/tokens,
			100*float64(c.activations.Total())/float64(plain.activations.Total()), c.last(), gap)
		s := chart.Series{Name: e.name}
		for step, loss := range c.losses {
			curvesTable.add(e.name, step, loss)
			s.Points = append(s.Points, chart.Point{X: float64(step), Y: 100 * (loss/plain.losses[step] - 1)})
		}
		if i > 0 {
			plot.Series = append(plot.Series, s)
		}
	}
	fp8, expanded := curves[2], curves[3]
	kept, all := curves[4], curves[5]
	perParameter := func(c curve) float64 { return float64(c.momentBytes) / float64(c.params) }
	saved := func(c curve) float64 {
		return 1 - float64(c.activations.Total())/float64(plain.activations.Total())
	}
	return &Report{
		Goals: []Goal{
			{"Moments in FP8, scales included", "at most 2.2 bytes a parameter, of 8",
				fmt.Sprintf("%.2f, expanded %.2f", perParameter(fp8), perParameter(expanded)), perParameter(fp8) <= 2.2 && perParameter(expanded) <= 2.2},
			{"Losses with activations in FP8 (without SwiGLU's)", "the same bits as in FP32", sameLosses(kept, plain), sameLosses(kept, plain) == "the same"},
			{"Largest gap in training loss of any way, last tenth of the steps", "within 1 %", fmt.Sprintf("%.2f %%", worst), worst < 1},
		},
		Findings: []string{
			fmt.Sprintf("Activations kept from the forward to the backward pass take %s less memory in FP8, and %s less with SwiGLU's inputs too.", percent(saved(kept)), percent(saved(all))),
			"What a linear layer keeps in FP8 is the operand that the product of its weight gradient multiplies anyway, which is why nothing changes.",
		},
		Limits: []string{
			fmt.Sprintf("One seed, %d parameters, %d steps: differences below about half a percent are the noise that any rounding makes.", plain.params, len(plain.losses)),
			"The residual stream, queries, keys, values and logits stay in FP32 here; large models keep them in BF16, and their vocabulary weighs less.",
		},
		Charts: []chart.Chart{plot},
		Tables: []Table{table, curvesTable},
	}
}

// sameLosses says whether two runs had the same bits in every step.
func sameLosses(a, b curve) string {
	for step, loss := range a.losses {
		if loss != b.losses[step] {
			return fmt.Sprintf("other from step %d on", step)
		}
	}
	return "the same"
}
