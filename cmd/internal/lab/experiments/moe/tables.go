package moe

import (
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
)

func (r *results) lossTable() report.Table {
	t := report.Table{
		Name: "losses", Title: "Training loss in the last two thirds of the steps and held-out loss after them, in nats per " +
			"byte, means over the seeds",
		Columns: []string{
			"", "training loss", "above BF16 %", "standard deviation", "interval from", "to",
			"held-out loss", "above BF16 %", "steps without a finite gradient",
		},
	}
	for i, a := range arms() {
		gaps, skipped := r.gap(i), 0
		for _, f := range r.seeds {
			skipped += f.arms[i].skipped
		}
		deviation, _ := statistics.Spread(gaps)
		m := statistics.OfMean(gaps, 1)
		above := statistics.PercentAbove(r.heldOut(i), r.heldOut(bf16Arm))
		t.Add(a.name, statistics.Mean(r.trained(i)), m.At, deviation, m.Low, m.High,
			statistics.Mean(r.heldOut(i)), statistics.Mean(above), skipped)
	}
	return t
}

func (r *results) loadTable() report.Table {
	t := report.Table{
		Name: "loads", Title: "How uneven the loads of experts are in the last third of the steps, means " +
			"over layers and seeds",
		Columns: []string{
			"", "variation in a step", "standard deviation", "variation of all steps together",
			"standard deviation", "largest above the mean, in a step %", "of all steps together %",
		},
	}
	for i, a := range arms() {
		step, all := r.byStep(i, variation), r.lasting(i, variation)
		stepDeviation, _ := statistics.Spread(step)
		allDeviation, _ := statistics.Spread(all)
		t.Add(a.name, statistics.Mean(step), stepDeviation, statistics.Mean(all), allDeviation,
			100*statistics.Mean(r.byStep(i, excess)), 100*statistics.Mean(r.lasting(i, excess)))
	}
	return t
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

// shareTable has what scales that experts share do.
func (r *results) shareTable() report.Table {
	t := report.Table{
		Name: "scales", Title: "Operands of FP8's experts after training in E4M3, by what shares a scale: " +
			"all experts of a layer, and the one of least amax; means over the seeds",
		Columns: []string{
			"operand", "amax of experts, largest over least, powers of two", "shares a scale",
			"flushed ‰", "error %", "flushed ‰, least expert", "error %, least expert",
		},
	}
	for o, of := range operands() {
		spread := statistics.Mean(r.spread(o))
		for way, name := range shareWays {
			t.Add(of.what, spread, name,
				statistics.Mean(r.flushed(o, ofAll(way))), statistics.Mean(r.off(o, ofAll(way))),
				statistics.Mean(r.flushed(o, ofLeast(way))), statistics.Mean(r.off(o, ofLeast(way))))
		}
	}
	return t
}

// comparedTable has choices and gradients at the same weights.
func (r *results) comparedTable() report.Table {
	t := report.Table{
		Name: "compared", Title: "Choices and gradients against FP32 at the weights where BF16 ended, in " +
			"percent, means over the seeds; errors are the median of weights",
		Columns: []string{
			"", "choices that change", "standard deviation", "gradient error", "above FP8's",
			"standard deviation",
		},
	}
	for _, part := range parts {
		t.Columns = append(t.Columns, "error, "+part)
	}
	for i, a := range compared() {
		changes, above := r.changes(i), r.above(i, fp8There)
		changesDeviation, _ := statistics.Spread(changes)
		aboveDeviation, _ := statistics.Spread(above)
		row := []any{a.name, statistics.Mean(changes), changesDeviation,
			statistics.Mean(r.gradient(i, products...)), statistics.Mean(above), aboveDeviation}
		for _, part := range parts {
			row = append(row, statistics.Mean(r.gradient(i, part)))
		}
		t.Add(row...)
	}
	return t
}

// seedTable has the figures that goals are made of.
func (r *results) seedTable() report.Table {
	t := report.Table{Name: "seeds", Raw: true, Columns: []string{"seed"}}
	values := r.judged()
	t.Columns = append(t.Columns, declared().Names()...)
	for i, f := range r.seeds {
		row := []any{fmt.Sprint(f.seed)}
		for _, name := range declared().Names() {
			row = append(row, values[name][i])
		}
		t.Add(row...)
	}
	return t
}

func (r *results) curveTable() report.Table {
	t := report.Table{Name: "curves", Raw: true, Columns: []string{"seed", "arm", "step", "loss"}}
	for _, f := range r.seeds {
		for i, a := range arms() {
			for step, loss := range f.arms[i].losses {
				t.Add(fmt.Sprint(f.seed), a.name, step, loss)
			}
		}
	}
	return t
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
