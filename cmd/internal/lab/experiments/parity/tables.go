package parity

import (
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
)

func (r *results) gapTable() report.Table {
	t := report.Table{
		Name: "gaps", Title: "Held-out loss above that of FP32, in percent, over the seeds",
		Columns: []string{"", "before it trains, mean", "after, mean", "standard deviation", "interval from", "to"},
	}
	for i, a := range arms()[fp32Arm+1:] {
		arm := fp32Arm + 1 + i
		_, deviation, _ := spreadOf(r.gap(arm))
		m := statistics.OfMean(r.gap(arm), 1)
		t.Add(a.name, statistics.Mean(r.gapBefore(arm)), m.At, deviation, m.Low, m.High)
	}
	return t
}

func (r *results) gradientTable() report.Table {
	t := report.Table{
		Name: "gradients", Title: "Error of gradients against float64, in percent, mean of weights and seeds",
		Columns: []string{
			"", "of a batch", "standard deviation", "1 - cosine", "bias", "standard deviation",
			fmt.Sprintf("of the mean of %d batches", r.study.batches),
			"squared error that is the same in all batches",
			fmt.Sprintf("of the sum of %d steps", r.study.walk), "standard deviation",
		},
	}
	for i, a := range arms()[fp32Arm+1:] {
		arm := fp32Arm + 1 + i
		e, eDeviation, _ := spreadOf(r.gradient(arm, relative))
		b, bDeviation, _ := spreadOf(r.gradient(arm, projection))
		s, sDeviation, _ := spreadOf(r.walked(arm, summed))
		t.Add(a.name, e, eDeviation, statistics.Mean(r.gradient(arm, distance)), b, bDeviation,
			statistics.Mean(r.gradient(arm, meanOver(r.study.batches))),
			statistics.Mean(r.gradient(arm, persistent)), s, sDeviation)
	}
	return t
}

func (r *results) additionTable() report.Table {
	t := report.Table{
		Name: "additions",
		Title: "Products of the same operands in E4M3 that are added in different ways, against exact " +
			"sums, in percent, mean of all products of a pass",
		Columns: []string{"", "error", "standard deviation", "bias", "standard deviation"},
	}
	for i, a := range additions() {
		e, eDeviation, _ := spreadOf(r.added(i, addedError))
		b, bDeviation, _ := spreadOf(r.added(i, addedBias))
		t.Add(a.name, e, eDeviation, b, bDeviation)
	}
	return t
}

func (r *results) layerTable() report.Table {
	t := report.Table{
		Name: "layers", Title: "Error of the gradient of each weight", Raw: true,
		Columns: []string{"seed", "arm", "weight", "error %", "cosine", "bias %", "sum of steps %"},
	}
	for _, f := range r.seeds {
		for i, a := range arms()[fp32Arm+1:] {
			for _, w := range r.weights {
				e := f.fixed[i][w]
				t.Add(fmt.Sprint(f.seed), a.name, w,
					100*e.relative, e.cosine, 100*e.projection, 100*f.walk[i][w].sum)
			}
		}
	}
	return t
}

func (r *results) lossTable() report.Table {
	t := report.Table{
		Name: "losses", Title: "Held-out loss in nats per byte",
		Columns: []string{"seed", "arm", "before", "after"},
	}
	for _, f := range r.seeds {
		for i, a := range arms() {
			t.Add(fmt.Sprint(f.seed), a.name, f.arms[i].before, f.arms[i].after)
		}
	}
	return t
}

func (r *results) curveTable() report.Table {
	t := report.Table{Name: "curves", Raw: true, Columns: []string{"seed", "arm", "step", "loss"}}
	for _, f := range r.seeds {
		for step, loss := range f.root {
			t.Add(fmt.Sprint(f.seed), "common", step, loss)
		}
		for i, a := range arms() {
			for step, loss := range f.arms[i].losses {
				t.Add(fmt.Sprint(f.seed), a.name, r.study.common+step, loss)
			}
		}
	}
	return t
}

// operandTable sets the operands beside those of a real model.
func (r *results) operandTable() report.Table {
	t := report.Table{
		Name: "operands",
		Title: "Spread of the inputs of linear layers, mean of layers: as trained in common, as they are " +
			"here, and in a real model",
		Columns: []string{
			"", "model", "kurtosis", "largest over root mean square",
			"channels: standard deviation, powers of two", "channels: largest over median",
		},
	}
	first := r.seeds[0]
	for i, k := range operandKinds {
		for _, m := range []struct {
			name string
			of   widths
		}{{"as trained", first.plain}, {"with a spread", first.spread}, {"real", r.real}} {
			if m.of != nil && len(m.of[i]) > 0 {
				w := mean(m.of[i])
				t.Add(k.what, m.name, w.kurtosis, w.amax, w.channels, w.largest)
			}
		}
	}
	return t
}
