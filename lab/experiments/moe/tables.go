package moe

import (
	"fmt"

	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

func (r *results) lossTable() report.Table {
	above := func(arm int) []float64 { return statistics.PercentAbove(r.heldOut(arm), r.heldOut(bf16Arm)) }
	return report.Fill(report.Table{
		Name: "losses", Title: "Training loss in the last two thirds of the steps and held-out loss after them, in nats per " +
			"byte, means over the seeds",
	}, report.Places(len(arms())), armName,
		report.Mean("training loss", r.trained), report.Mean("above BF16 %", r.gap), report.Deviation("standard deviation", r.gap),
		report.Low("interval from", r.gap), report.High("to", r.gap),
		report.Mean("held-out loss", r.heldOut), report.Mean("above BF16 %", above),
		report.Cell("steps without a finite gradient", func(arm int) (skipped int) {
			for _, f := range r.seeds {
				skipped += f.arms[arm].skipped
			}
			return skipped
		}))
}

var armName = report.Cell("", func(arm int) string { return arms()[arm].name })

func (r *results) loadTable() report.Table {
	step := func(arm int) []float64 { return r.byStep(arm, variation) }
	all := func(arm int) []float64 { return r.lasting(arm, variation) }
	return report.Fill(report.Table{
		Name: "loads", Title: "How uneven the loads of experts are in the last third of the steps, means " +
			"over layers and seeds",
	}, report.Places(len(arms())), armName,
		report.Mean("variation in a step", step), report.Deviation("standard deviation", step),
		report.Mean("variation of all steps together", all), report.Deviation("standard deviation", all),
		report.Cell("largest above the mean, in a step %", func(arm int) float64 { return 100 * statistics.Mean(r.byStep(arm, excess)) }),
		report.Cell("of all steps together %", func(arm int) float64 { return 100 * statistics.Mean(r.lasting(arm, excess)) }))
}

// expertTable is the telemetry of each expert of the first seed.
func (r *results) expertTable() report.Table {
	f, s := r.seeds[0], r.study
	t := report.Table{
		Name: "experts", Title: fmt.Sprintf("Telemetry of each expert in the last third of the steps, seed %d: "+
			"largest amax in FP8, and of all four operands what is lost", f.seed),
		Columns: []string{"layer", "expert", "tokens that come to it %"},
	}
	for _, o := range operands() {
		t.Columns = append(t.Columns, "amax, "+o.what)
	}
	t.Columns = append(t.Columns, "flushed ‰", "saturated of a million", "saturated of a million, delayed scales")
	for m := range s.mixtures() {
		load := append(r.lateLoad(f.arms[fp8Arm], m), (s.steps-s.late())*s.batch*s.seq)
		for e := range s.experts() + 1 {
			name := fmt.Sprint(e)
			if e == s.experts() {
				name = "shared"
			}
			row := []any{s.config().Dense + m, name, 100 * float64(load[e]) / float64(load[s.experts()])}
			own := r.expertHeard(f.arms[fp8Arm], m, e)
			for _, amax := range own.amax {
				row = append(row, amax)
			}
			late := r.expertHeard(f.arms[delayedArm], m, e)
			t.Add(append(row, 1e3*own.share(own.flushed), 1e6*own.share(own.saturated),
				1e6*late.share(late.saturated))...)
		}
	}
	return t
}

// expertHeard is what was heard of an expert in the last third of the steps.
type expertHeard struct {
	amax                         []float64 // by operand
	elements, flushed, saturated int64
}

func (e expertHeard) share(n int64) float64 { return float64(n) / float64(e.elements) }

func (r *results) expertHeard(a result, mixture, expert int) expertHeard {
	e := expertHeard{amax: make([]float64, len(operands()))}
	for _, h := range r.lateHeard(a) {
		if h.mixture == mixture && h.expert == expert {
			e.amax[h.operand] = max(e.amax[h.operand], h.amax)
			e.elements += h.elements
			e.flushed += h.flushed
			e.saturated += h.saturated
		}
	}
	return e
}

// sharing is an operand, and what shares its scale.
type sharing struct{ operand, way int }

func sharings() (all []sharing) {
	for o := range operands() {
		for way := range shareWays {
			all = append(all, sharing{o, way})
		}
	}
	return all
}

// shareTable has what scales that experts share do.
func (r *results) shareTable() report.Table {
	lost := func(figure func(int, func(roundings) rounding) []float64, of func(way int) func(roundings) rounding) func(sharing) []float64 {
		return func(s sharing) []float64 { return figure(s.operand, of(s.way)) }
	}
	return report.Fill(report.Table{
		Name: "scales", Title: "Operands of FP8's experts after training in E4M3, by what shares a scale: " +
			"all experts of a layer, and the one of least amax; means over the seeds",
	}, sharings(),
		report.Cell("operand", func(s sharing) string { return operands()[s.operand].what }),
		report.Mean("amax of experts, largest over least, powers of two", func(s sharing) []float64 { return r.spread(s.operand) }),
		report.Cell("shares a scale", func(s sharing) string { return shareWays[s.way] }),
		report.Mean("flushed ‰", lost(r.flushed, ofAll)), report.Mean("error %", lost(r.off, ofAll)),
		report.Mean("flushed ‰, least expert", lost(r.flushed, ofLeast)), report.Mean("error %, least expert", lost(r.off, ofLeast)))
}

// comparedTable has choices and gradients at the same weights.
func (r *results) comparedTable() report.Table {
	above := func(arm int) []float64 { return r.above(arm, fp8There) }
	error := func(of ...string) func(arm int) []float64 {
		return func(arm int) []float64 { return r.gradient(arm, of...) }
	}
	columns := []report.Column[int]{
		report.Cell("", func(arm int) string { return compared()[arm].name }),
		report.Mean("choices that change", r.changes), report.Deviation("standard deviation", r.changes),
		report.Mean("gradient error", error(products...)),
		report.Mean("above FP8's", above), report.Deviation("standard deviation", above),
	}
	for _, part := range parts {
		columns = append(columns, report.Mean("error, "+part, error(part)))
	}
	return report.Fill(report.Table{
		Name: "compared", Title: "Choices and gradients against FP32 at the weights where BF16 ended, in " +
			"percent, means over the seeds; errors are the median of weights",
	}, report.Places(len(compared())), columns...)
}

// seedTable has the figures that goals are made of.
func (r *results) seedTable() report.Table {
	values := r.judged()
	columns := []report.Column[int]{report.Cell("seed", func(i int) uint64 { return r.seeds[i].seed })}
	for _, name := range declared().Names() {
		columns = append(columns, report.Cell(name, func(i int) float64 { return values[name][i] }))
	}
	return report.Fill(report.Table{Name: "seeds", Raw: true}, report.Places(len(r.seeds)), columns...)
}

// curves are the training losses.
func (r *results) curves() (all report.Curves) {
	for _, f := range r.seeds {
		for i, a := range arms() {
			all = append(all, report.Curve{Seed: f.seed, Arm: a.name, Values: f.arms[i].losses})
		}
	}
	return all
}

// loadsTable has the loads of the first seed, step by step.
func (r *results) loadsTable() report.Table {
	t := report.Table{Name: "steps", Raw: true, Columns: []string{"seed", "arm", "layer", "step"}}
	for e := range r.study.experts() {
		t.Columns = append(t.Columns, fmt.Sprintf("tokens, expert %d", e))
	}
	f := r.seeds[0]
	for i, a := range arms() {
		for step, loads := range f.arms[i].loads {
			for m, load := range loads {
				row := []any{fmt.Sprint(f.seed), a.name, r.study.config().Dense + m, step}
				for _, n := range load {
					row = append(row, n)
				}
				t.Add(row...)
			}
		}
	}
	return t
}

// heardTable is the telemetry of the first seed, step by step.
func (r *results) heardTable() report.Table {
	t := report.Table{
		Name: "telemetry", Raw: true,
		Columns: []string{
			"seed", "arm", "step", "operand", "layer", "expert", "amax", "values", "saturated", "flushed",
		},
	}
	f := r.seeds[0]
	for i, a := range arms() {
		for _, h := range f.arms[i].heard {
			expert := fmt.Sprint(h.expert)
			if h.expert == r.study.experts() {
				expert = "shared"
			}
			t.Add(fmt.Sprint(f.seed), a.name, h.step, operands()[h.operand].what,
				r.study.config().Dense+h.mixture, expert, h.amax, h.elements, h.saturated, h.flushed)
		}
	}
	return t
}
