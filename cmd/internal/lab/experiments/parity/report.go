package parity

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
)

// lossKind is a loss by which runs are compared.
type lossKind struct {
	name string
	of   func(training.Curve) float64
}

func heldOut(c training.Curve) float64 { return c.HeldOut }

func lastLoss(c training.Curve) float64 { return c.Last() }

// lossKinds begins with DeepSeek-V3's. Batches of that one were not seen before, as
// long as the text is much longer than a training.
func lossKinds() []lossKind {
	return []lossKind{{"Training loss, last tenth of the steps,", lastLoss}, {"Held-out loss", heldOut}}
}

func (c *comparison) report() *report.Report {
	r := &report.Report{Charts: []chart.Chart{c.lossChart(), c.gapChart(), c.seedChart()}, Tables: []report.Table{c.gapTable(), c.lossTable(), c.curveTable()}}
	for _, over := range []int{bf16Way, fp32Way} {
		for _, kind := range lossKinds() {
			percents := c.gap(fp8Way, over, kind.of)
			_, ofMean := statistics.Spread(percents)
			r.Goals = append(r.Goals, report.NewGoal(
				fmt.Sprintf("%s of FP8 over that of %s, mean of %d seeds", kind.name, c.ways[over].Name, len(c.seeds)),
				fmt.Sprintf("within %v %%", gradeOfGap),
				fmt.Sprintf("%+.3f %% (standard error %.3f)", statistics.Mean(percents), ofMean),
				math.Abs(statistics.Mean(percents)) < gradeOfGap))
		}
	}
	noise, _ := statistics.Spread(c.gap(bf16Way, fp32Way, heldOut))
	between, _ := statistics.Spread(c.gap(fp8Way, fp32Way, heldOut))
	single := c.gap(fp8Way, bf16Way, lastLoss)
	r.Findings = []report.Finding{
		report.NewFinding(fmt.Sprintf("From seed to seed the gap in held-out loss has a standard deviation of %.2f %% between FP8 and FP32, and of %.2f %% between BF16 and FP32.", between, noise),
			report.If(between > gradeOfGap,
				fmt.Sprintf("That is more than the %v %% in question, so the gap of a single run says little.", gradeOfGap),
				fmt.Sprintf("That is no more than the %v %% in question, so the gap of a single run says something too.", gradeOfGap))),
		report.NewFinding(fmt.Sprintf("In training loss single runs have gaps between FP8 and BF16 from %+.3f to %+.3f %%, with a median of %+.3f; %d of %d are within %v %%.",
			slices.Min(single), slices.Max(single), statistics.Median(single), within(single, gradeOfGap), len(single), gradeOfGap)),
	}
	r.Limits = []string{
		fmt.Sprintf("Models have %d parameters and see %d bytes; DeepSeek-V3's figure is for models of 16 and 230 billion and a trillion tokens. What goes wrong late in training cannot show here.",
			c.curves[0].Params, c.setup.Steps*c.setup.Batch*c.setup.Seq),
		"BF16 rounds the operands and the results of the linear layers' products and adds in FP32; attention scores, norms and the optimizer are FP32 in all runs.",
	}
	return r
}

// within returns how many values are at most that far from 0.
func within(values []float64, most float64) (n int) {
	for _, v := range values {
		if math.Abs(v) <= most {
			n++
		}
	}
	return n
}
