package moe

import (
	"fmt"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

// judged are the values of each hypothesis and control, one of each seed.
func (r *results) judged() map[string][]float64 {
	return map[string][]float64{
		"loss-fp8":         r.gap(fp8Arm),
		"loss-deepseek-v3": r.gap(deepSeekArm),
		"loss-mxfp8":       r.gap(mxfp8Arm),
		"loss-lower-rate":  r.gap(slowerArm),

		"load-no-biases": statistics.PercentAbove(
			r.byStep(unbalancedArm, variation), r.byStep(bf16Arm, variation)),
		"balanced": statistics.Ratios(r.lasting(bf16Arm, variation), r.lasting(unbalancedArm, variation)),
		"load-fp8": statistics.PercentAbove(r.byStep(fp8Arm, variation), r.byStep(bf16Arm, variation)),

		"choices-fp8":         r.changes(fp8There),
		"choices-deepseek-v3": r.changes(deepSeekThere),
		"choices-mxfp8":       r.changes(mxfp8There),
		"choices-router-e2m1": r.changes(routerE2M1There),

		"error-deepseek-v3":     r.above(deepSeekThere, fp8There),
		"error-mxfp8":           r.above(mxfp8There, fp8There),
		"error-e5m2":            r.above(e5m2There, fp8There),
		"error-gradient-blocks": r.above(blocksThere, fp8There),

		"amax-spread":    r.spread(inputOfDown),
		"shared-scale":   r.flushedMore(inputOfDown),
		"late-saturated": statistics.Differences(r.saturated(delayedArm, false), r.saturated(delayedArm, true)),
	}
}

func (r *results) report() *report.Report {
	out := &report.Report{
		Charts: []chart.Chart{
			r.gapChart(), r.seedChart(), r.variationChart(), r.loadChart(), r.amaxChart(),
			r.saturatedChart(), r.flushedChart(), r.changedChart(), r.gradientChart(),
		},
		Tables: []report.Table{
			r.lossTable(), r.loadTable(), r.expertTable(), r.shareTable(), r.comparedTable(),
			r.seedTable(), r.curves().Table("curves", "seed", "arm", "step", "loss"), r.loadsTable(), r.heardTable(),
		},
	}
	values := r.judged()
	for _, name := range declared().Names() {
		out.Goals = append(out.Goals, declared().Judge(name, values[name]))
	}
	out.Findings = []report.Finding{
		r.lossFinding(out.Goals), r.loadFinding(out.Goals), r.choiceFinding(out.Goals),
		r.expertFinding(out.Goals),
	}
	out.Limits = r.limits()
	return out
}

// percent is a mean over seeds with its interval.
func percent(values []float64) string { return report.Interval(values, "%+.3f", " %") }

// lossFinding says how far the loss is from BF16's.
func (r *results) lossFinding(goals []report.Goal) report.Finding {
	return report.NewFinding(fmt.Sprintf("The training loss of the last two thirds of the steps is above that of BF16 by %s in FP8 (in brackets "+
		"the interval over seeds), by %s under DeepSeek-V3's recipe, by %s in MXFP8, by %s under delayed "+
		"scales, and by %s in BF16 with a rate that is lower by a fifth. Without biases that balance "+
		"experts BF16 itself is off by %s. As declared: %s.",
		percent(r.gap(fp8Arm)), percent(r.gap(deepSeekArm)), percent(r.gap(mxfp8Arm)),
		percent(r.gap(delayedArm)), percent(r.gap(slowerArm)), percent(r.gap(unbalancedArm)),
		report.Outcomes(goals, "loss-fp8", "loss-deepseek-v3", "loss-mxfp8", "loss-lower-rate")))
}

// loadFinding says how tokens are shared out.
func (r *results) loadFinding(goals []report.Goal) report.Finding {
	of := func(values []float64) float64 { return statistics.Mean(values) }
	return report.NewFinding(fmt.Sprintf("The coefficient of variation of the experts' loads, over the last "+
		"third of the steps together, is %.3f in BF16 with biases and %.3f without, and %.3f in FP8 with "+
		"them; within a step it is %.3f, %.3f and %.3f. As declared: %s.",
		of(r.lasting(bf16Arm, variation)), of(r.lasting(unbalancedArm, variation)),
		of(r.lasting(fp8Arm, variation)), of(r.byStep(bf16Arm, variation)),
		of(r.byStep(unbalancedArm, variation)), of(r.byStep(fp8Arm, variation)),
		report.Outcomes(goals, "balanced", "load-fp8", "load-no-biases")))
}

// choiceFinding says which choices change, and what becomes of gradients.
func (r *results) choiceFinding(goals []report.Goal) report.Finding {
	changes := func(arm int) string { return report.Interval(r.changes(arm), "%.2f", " %") }
	return report.NewFinding(fmt.Sprintf("Of the choices that a model makes, this many are not those of the "+
		"same weights in FP32, though the router's own product is FP32: in BF16 %s, in FP8 %s. With the "+
		"router's operands in BF16, E4M3 and E2M1 it is %s, %s and %s. The error of gradients is above "+
		"FP8's by %s with tiles of 128x128 for gradients, and by %s in E5M2. As declared: %s.",
		changes(bf16There), changes(fp8There), changes(routerBF16There), changes(routerE4M3There),
		changes(routerE2M1There), percent(r.above(blocksThere, fp8There)),
		percent(r.above(e5m2There, fp8There)),
		report.Outcomes(goals, "choices-fp8", "choices-router-e2m1", "error-gradient-blocks", "error-e5m2")))
}

// expertFinding says how experts differ, and what that does.
func (r *results) expertFinding(goals []report.Goal) report.Finding {
	flushed := func(way int) string { return report.Interval(r.flushed(inputOfDown, ofAll(way)), "%.3f", " ‰") }
	return report.NewFinding(fmt.Sprintf("The largest amax of an expert's input of down is %s powers of two "+
		"above the least of the layer. Of these inputs become 0: with one scale for the tokens of all "+
		"experts %s, with one for those of each expert %s, with one for 1x128 %s. Under delayed scales "+
		"saturate of a million values %s in experts to choose from, and %s in the shared one; under the "+
		"default recipe %s. As declared: %s.",
		report.Interval(r.spread(inputOfDown), "%.2f", ""), flushed(oneScale), flushed(scaleEach), flushed(scaleTile),
		report.Interval(r.saturated(delayedArm, false), "%.1f", ""), report.Interval(r.saturated(delayedArm, true), "%.1f", ""),
		report.Interval(r.saturated(fp8Arm, false), "%.1f", ""),
		report.Outcomes(goals, "amax-spread", "shared-scale", "late-saturated")))
}

func (r *results) limits() []string {
	c, s := r.study.config(), r.study
	return []string{
		fmt.Sprintf("Models have %d layers of width %d, %d experts of which a token goes to %d and a shared "+
			"one, and see %d bytes; DeepSeek-V3's figure is for models of 16 and 230 billion with 64 to 256 "+
			"experts and a trillion tokens. What goes wrong late in training cannot show here.",
			c.Layers, c.Dim, c.Experts.Router.Experts, c.Experts.Router.TopK, s.steps*s.batch*s.seq),
		"Runs of one seed have first weights and batches in common, and part by chance once a token has " +
			"gone to another expert: of what the loss shows, that is part. Its control is a lower rate; that it " +
			"tells arithmetics apart is not shown: in a pilot FP4 without its recipe was no worse.",
		"BF16 rounds the operands and the results of the linear layers' products and adds in FP32; the " +
			"router, attention scores, norms, the head and the optimizer are FP32 in all runs, but for " +
			"DeepSeek-V3's moments in BF16 and the routers that say otherwise.",
		"All experts are in one process: nothing is sent, and nothing is dropped for lack of capacity.",
		"Choices and gradients are compared at the weights where BF16's training ended. Gradients of FP32 " +
			"are taken for the true ones; a token that goes to another expert counts as an error of both " +
			"experts' gradients.",
		fmt.Sprintf("Operands are recorded in every step of %d; saturation between is not seen.", s.every),
	}
}
