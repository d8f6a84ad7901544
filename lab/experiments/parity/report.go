package parity

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
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
			r.lossTable(), r.layerTable(), r.curves().Table("curves", "seed", "arm", "step", "loss"),
		},
	}
	values := r.judged()
	for _, name := range declared().Names() {
		out.Goals = append(out.Goals, declared().Judge(name, values[name]))
	}
	out.Findings = []report.Finding{
		r.lossFinding(out.Goals), r.gradientFinding(out.Goals), r.batchesFinding(out.Goals),
	}
	out.Limits = r.limits()
	return out
}

// said is a mean over seeds with its interval, in percent.
func said(values []float64) string { return report.Interval(values, "%+.4f", " %") }

// lossFinding says how far the loss is from that of FP32, and that of which arms it is not
// asked to tell.
func (r *results) lossFinding(goals []report.Goal) report.Finding {
	return report.NewFinding(fmt.Sprintf("Held-out loss is above that of FP32 by %s in FP8 (in brackets "+
		"the interval over seeds), by %s in E5M2 with one scale per tensor, which seed by seed is %s "+
		"above FP8, and by %s under stale scales. The last two are no controls of the loss: pilots say "+
		"that at this scale it cannot tell them from FP32 by the margin, whether they do harm or not. "+
		"Their controls are errors of gradients: %s.",
		said(r.gap(fp8Arm)), said(r.gap(e5m2Arm)),
		said(statistics.Differences(r.gap(e5m2Arm), r.gap(fp8Arm))), said(r.gap(staleArm)),
		report.Outcomes(goals, "error-e5m2", "sum-e5m2", "error-stale")))
}

// gradientFinding says how far gradients are from those in float64.
func (r *results) gradientFinding(goals []report.Goal) report.Finding {
	more := statistics.Differences(r.gradient(e5m2Arm, relative), r.gradient(fp8Arm, relative))
	return report.NewFinding(fmt.Sprintf("The gradient of a batch is off by this much of its length: in "+
		"FP8 %s, in E5M2 with one scale per tensor %s, seed by seed %s more than in FP8. Against BF16's "+
		"error, as declared: %s.",
		said(r.gradient(fp8Arm, relative)), said(r.gradient(e5m2Arm, relative)), said(more),
		report.Outcomes(goals, "error-fp8", "error-deepseek-v3", "error-e5m2")))
}

// batchesFinding says how far errors of gradients average out.
func (r *results) batchesFinding(goals []report.Goal) report.Finding {
	n := r.study.batches
	return report.NewFinding(fmt.Sprintf("The mean of %d batches has %s of the error that one batch's "+
		"gradient has in FP8; if errors were independent from batch to batch it would be %.1f %%. The "+
		"part that is the same in all batches is %s of the squared error in FP8, and %s where codes are "+
		"truncated. As declared: %s.",
		n, said(r.gradient(fp8Arm, fallen)), 100/math.Sqrt(float64(n)),
		said(r.gradient(fp8Arm, persistent)), said(r.gradient(truncatedArm, persistent)),
		report.Outcomes(goals, "lasting-fp8", "lasting-deepseek-v3", "lasting-truncated")))
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
