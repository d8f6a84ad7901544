package memory

import (
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
)

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
		Charts: []chart.Chart{r.chart()},
		Tables: []report.Table{r.table(setup.Batch * setup.Seq), r.lossTable(seed), r.curves(seed)},
	}
}

// heldOut returns the held-out losses of an economy, one a seed.
func (r results) heldOut(economy int) (losses []float64) {
	for _, curves := range r {
		losses = append(losses, curves[economy].HeldOut)
	}
	return losses
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
	kept := find("activations FP8")
	differs, at := r.differs(kept)
	return []report.Finding{
		report.NewFinding(fmt.Sprintf("Activations kept from the forward to the backward pass take %s of the memory in FP8, and %s with SwiGLU's inputs too.",
			left(kept), left(find("activations FP8, SwiGLU's too")))),
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
	t := report.Table{
		Name: "bytes", Title: "Memory and held-out loss of FP8 training: means over seeds",
		Columns: []string{"kept", "moments, bytes a parameter", "activations, bytes a token", "of all FP32 %", "held-out loss", "above all FP32 %", "standard error"},
	}
	plain := r[0][0]
	for i, e := range economies() {
		c := r[0][i]
		gaps := r.gaps(i)
		_, ofMean := statistics.Spread(gaps)
		t.Add(e.name, float64(c.MomentBytes)/float64(c.Params), c.Activations.Total()/tokens,
			100*float64(c.Activations.Total())/float64(plain.Activations.Total()), statistics.Mean(r.heldOut(i)), statistics.Mean(gaps), ofMean)
	}
	return t
}

func (r results) lossTable(seed uint64) report.Table {
	t := report.Table{Name: "seeds", Title: "Held-out losses of all seeds", Raw: true, Columns: []string{"seed", "kept", "held-out loss", "above all FP32 %"}}
	for s, curves := range r {
		for i, e := range economies() {
			t.Add(seed+uint64(s), e.name, curves[i].HeldOut, r.gaps(i)[s])
		}
	}
	return t
}

func (r results) curves(seed uint64) report.Table {
	t := report.Table{Name: "curves", Title: "Training losses", Raw: true, Columns: []string{"seed", "kept", "step", "loss"}}
	for s, curves := range r {
		for i, e := range economies() {
			for step, loss := range curves[i].Losses {
				t.Add(seed+uint64(s), e.name, step, loss)
			}
		}
	}
	return t
}

func (r results) chart() chart.Chart {
	plot := chart.Chart{Title: "Training loss above that of all FP32: mean over seeds", X: "step", Y: "percent", Zero: true, Smooth: true}
	for i, e := range economies()[1:] {
		series := chart.Series{Name: e.name, Dashed: e.name == "activations FP8"}
		for step := range r[0][0].Losses {
			var above float64
			for _, curves := range r {
				above += 100 * (curves[i+1].Losses[step]/curves[0].Losses[step] - 1) / float64(len(r))
			}
			series.Points = append(series.Points, chart.Point{X: float64(step), Y: above})
		}
		plot.Series = append(plot.Series, series)
	}
	return plot
}
