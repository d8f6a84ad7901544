// Package memory asks what moments and activations in 8 bits save and cost.
package memory

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
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

// results are the curves of all seeds, each with one of every economy.
type results [][]training.Curve

func newReport(curves []training.Curve, setup training.Setup, seed uint64) *report.Report {
	var r results
	for n := len(economies()); len(curves) > 0; curves = curves[n:] {
		r = append(r, curves[:n])
	}
	return &report.Report{
		Goals:    r.goals(),
		Findings: r.findings(),
		Limits: []string{
			fmt.Sprintf("%d seeds of weights and batches of one text, %d parameters, %d steps of %d bytes: what a moment's rounding does in a million steps is not in it.",
				len(r), r[0][0].Params, len(r[0][0].Losses), setup.Batch*setup.Seq),
			"The residual stream, queries, keys, values and logits stay in FP32 here; large models keep them in BF16, and their vocabulary weighs less.",
			"What is published is that training hardly notices, of models of billions of parameters; the margins are ours.",
		},
		Charts: []chart.Chart{
			report.Draw(chart.Chart{
				Title: "Training loss above that of all FP32: mean over seeds", X: "step", Y: "percent", Zero: true, Smooth: true,
			}, func(p *report.Plot) {
				for _, e := range economies()[1:] {
					p.AddCurves(r.losses(0).Above(e.name, economies()[0].name), chart.Series{Name: e.name, Dashed: e.name == "activations FP8"})
				}
			}),
		},
		Tables: []report.Table{r.table(setup.Batch * setup.Seq), r.lossTable(seed), r.losses(seed).Table("curves", "seed", "kept", "step", "loss")},
	}
}

// heldOut returns the held-out losses of an economy, one a seed.
func (r results) heldOut(economy int) []float64 {
	return statistics.Each(r, func(curves []training.Curve) float64 { return curves[economy].HeldOut })
}

// gaps returns by how many percent the held-out loss of an economy is above that of none
// under the same seed: one value a seed.
func (r results) gaps(economy int) []float64 {
	return statistics.PercentAbove(r.heldOut(economy), r.heldOut(0))
}

func (r results) goals() (goals []report.Goal) {
	for i, e := range economies() {
		if e.goal != "" {
			goals = append(goals, declared().Judge(e.goal, r.gaps(i)))
		}
	}
	return goals
}

func (r results) findings() []report.Finding {
	plain := r[0][0]
	left := func(economy int) string {
		return report.Percent(float64(r[0][economy].Activations.Total()) / float64(plain.Activations.Total()))
	}
	saved := find("activations FP8")
	differs, at := r.differs(saved)
	return []report.Finding{
		report.NewFinding(fmt.Sprintf("Activations kept from the forward to the backward pass take %s of the memory in FP8, and %s with SwiGLU's inputs too.",
			left(saved), left(find("activations FP8, SwiGLU's too")))),
		report.NewFinding("What a linear layer keeps in FP8 is the operand that the product of its weight gradient multiplies anyway.",
			report.If(!differs,
				"So no loss changes in any bit.",
				fmt.Sprintf("So no loss should change in any bit, but from step %d on one does: that is a defect.", at))),
	}
}

// find returns the place of an economy.
func find(name string) int {
	for i, e := range economies() {
		if e.name == name {
			return i
		}
	}
	panic("memory: no economy " + name)
}

// differs reports whether an economy has other bits than none in a step of any seed, and
// which is the first such step of the first such seed.
func (r results) differs(economy int) (differs bool, step int) {
	for _, curves := range r {
		for step, loss := range curves[economy].Losses {
			if loss != curves[0].Losses[step] {
				return true, step
			}
		}
	}
	return false, 0
}

func (r results) table(tokens int) report.Table {
	of := func(i int) training.Curve { return r[0][i] }
	return report.Fill(report.Table{Name: "bytes", Title: "Memory and held-out loss of FP8 training: means over seeds"}, report.Places(len(economies())), kept,
		report.Cell("moments, bytes a parameter", func(i int) float64 { return float64(of(i).MomentBytes) / float64(of(i).Params) }),
		report.Cell("activations, bytes a token", func(i int) int { return of(i).Activations.Total() / tokens }),
		report.Cell("of all FP32 %", func(i int) float64 {
			return 100 * float64(of(i).Activations.Total()) / float64(of(0).Activations.Total())
		}),
		report.Mean("held-out loss", r.heldOut), report.Mean("above all FP32 %", r.gaps), report.StandardError("standard error", r.gaps))
}

var kept = report.Cell("kept", func(i int) string { return economies()[i].name })

func (r results) lossTable(seed uint64) report.Table {
	t := report.Table{Name: "seeds", Title: "Held-out losses of all seeds", Raw: true, Columns: []string{"seed", "kept", "held-out loss", "above all FP32 %"}}
	for s, curves := range r {
		for i, e := range economies() {
			t.Add(seed+uint64(s), e.name, curves[i].HeldOut, r.gaps(i)[s])
		}
	}
	return t
}

// losses are the training losses.
func (r results) losses(seed uint64) report.Curves {
	return report.CurvesOf(report.Places(len(r)), func(int) []economy { return economies() }, func(s int, e economy) report.Curve {
		return report.Curve{Seed: seed + uint64(s), Arm: e.name, Values: r[s][find(e.name)].Losses}
	})
}
