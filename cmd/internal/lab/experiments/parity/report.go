package parity

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
)

// judged are the values of each hypothesis and control, one of each seed.
func (r *results) judged() map[string][]float64 {
	all := map[string][]float64{
		"addition-fp32":         r.added(inFP32, addedError),
		"addition-promoted":     r.added(promoted, addedError),
		"addition-not-promoted": r.added(notPromoted, addedError),
	}
	for arm, name := range map[int]string{
		bf16Arm: "bf16", fp8Arm: "fp8", deepSeekArm: "deepseek-v3",
		e5m2Arm: "e5m2", truncatedArm: "truncated", staleArm: "stale", fp4Arm: "fp4",
	} {
		all["loss-"+name] = r.gap(arm)
		all["error-"+name] = statistics.Ratios(r.gradient(arm, relative), r.gradient(bf16Arm, relative))
		all["bias-"+name] = r.gradient(arm, projection)
		all["sum-"+name] = statistics.Ratios(r.walked(arm, summed), r.walked(bf16Arm, summed))
		all["lasting-"+name] = r.gradient(arm, persistent)
	}
	return all
}

func (r *results) report() *report.Report {
	out := &report.Report{
		Charts: []chart.Chart{
			r.curveChart(), r.lossChart(), r.seedChart(),
			r.layerChart(), r.biasChart(), r.batchesChart(),
		},
		Tables: []report.Table{
			r.gapTable(), r.gradientTable(), r.additionTable(), r.operandTable(),
			r.lossTable(), r.layerTable(), r.curveTable(),
		},
	}
	values := r.judged()
	for _, name := range declared.Names() {
		out.Goals = append(out.Goals, declared.Judge(name, values[name]))
	}
	out.Findings = []report.Finding{r.lossFinding(), r.gradientFinding(), r.batchesFinding()}
	out.Limits = r.limits()
	return out
}

// lossFinding says what the loss tells apart.
func (r *results) lossFinding() report.Finding {
	fp8, deviation, _ := spreadOf(r.gap(fp8Arm))
	e5m2, otherDeviation, _ := spreadOf(r.gap(e5m2Arm))
	d := statistics.OfMean(statistics.Differences(r.gap(e5m2Arm), r.gap(fp8Arm)), 1)
	return report.NewFinding(
		fmt.Sprintf("Held-out loss of FP8 is above that of FP32 by %+.4f %% (standard deviation "+
			"over seeds %.4f), and that of E5M2 with one scale per tensor by %+.4f %% (%.4f). Seed by seed "+
			"the second is above the first by %+.4f %%, with an interval from %+.4f to %+.4f.",
			fp8, deviation, e5m2, otherDeviation, d.At, d.Low, d.High),
		report.If(d.Low > 0,
			"So the loss tells the crudest recipe in FP8 from the finest.",
			"So the loss does not tell the crudest recipe in FP8 from the finest: "+
				"that both are near FP32 says little about either.")).AtLength()
}

// gradientFinding says what the gradients tell apart.
func (r *results) gradientFinding() report.Finding {
	fp8, deviation, _ := spreadOf(r.gradient(fp8Arm, relative))
	e5m2, otherDeviation, _ := spreadOf(r.gradient(e5m2Arm, relative))
	more := statistics.Differences(r.gradient(e5m2Arm, relative), r.gradient(fp8Arm, relative))
	d := statistics.OfMean(more, 1)
	return report.NewFinding(
		fmt.Sprintf("The gradient of a batch is off by %.2f %% of its length in FP8 (standard "+
			"deviation over seeds %.2f), and by %.2f %% in E5M2 with one scale per tensor (%.2f).",
			fp8, deviation, e5m2, otherDeviation),
		report.If(d.Low > 0,
			fmt.Sprintf("So gradients tell them apart: the difference is %.1f times the half width of its "+
				"interval.", d.At/(d.High-d.At)),
			"So even gradients do not tell them apart.")).AtLength()
}

// batchesFinding says whether errors of gradients average out.
func (r *results) batchesFinding() report.Finding {
	n := r.study.batches
	fallen, free := statistics.Mean(r.gradient(fp8Arm, fallen)), 100/math.Sqrt(float64(n))
	return report.NewFinding(
		fmt.Sprintf("The mean of %d batches has %.1f %% of the error that one batch's gradient has in FP8; "+
			"if errors were independent from batch to batch it would be %.1f %%. The part that is the same "+
			"in all batches is %.1f %% of the squared error in FP8, and %.1f %% where codes are truncated.",
			n, fallen, free, statistics.Mean(r.gradient(fp8Arm, persistent)),
			statistics.Mean(r.gradient(truncatedArm, persistent))),
		report.If(fallen > 1.2*free,
			"So a part of the error stays: weights are rounded alike in every batch.",
			"So the error falls nearly as that of independent draws.")).AtLength()
}

func (r *results) limits() []string {
	c, form, steps := r.study.config, r.study.form, r.study.common+r.study.apart
	return []string{
		fmt.Sprintf("Models have %d layers of width %d and %d and see %d bytes; DeepSeek-V3's figure is "+
			"for models of 16 and 230 billion and a trillion tokens. What goes wrong late in training "+
			"cannot show here.",
			c.Layers, c.Dim, c.Hidden, steps*r.study.sequences*c.Context),
		fmt.Sprintf("All arms begin from a model that was trained in FP32, %d steps of %d. "+
			"Gaps are those of what followed.", r.study.common, steps),
		fmt.Sprintf("Outliers are not grown by training: channels are multiplied by powers of two, of "+
			"deviation %v, and %v %% of them by %v, and the weights that read them divided by as much, "+
			"which changes nothing in FP32.",
			form.deviation, 100*form.outliers, form.outlier),
		"BF16 rounds the operands and the results of the linear layers' products and adds in FP32; " +
			"attention scores, norms, the head and the optimizer are FP32 in all runs, but for DeepSeek-V3's " +
			"moments in BF16.",
		"The true gradient is that of the same weights in float64: rounding that weights have in " +
			"common is an error here, though a model can learn to live with it.",
	}
}
