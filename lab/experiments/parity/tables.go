package parity

import (
	"fmt"

	"github.com/octavo-fp8/octavo/lab/report"
)

// trainedArms are those that are compared with FP32.
func trainedArms() []int { return report.Places(len(arms()))[fp32Arm+1:] }

var armName = report.Cell("", func(arm int) string { return arms()[arm].name })

func (r *results) gapTable() report.Table {
	return report.Fill(report.Table{Name: "gaps", Title: "Held-out loss above that of FP32, in percent, over the seeds"},
		trainedArms(), armName,
		report.Mean("before it trains, mean", r.gapBefore), report.Mean("after, mean", r.gap),
		report.Deviation("standard deviation", r.gap), report.Low("interval from", r.gap), report.High("to", r.gap))
}

func (r *results) gradientTable() report.Table {
	of := func(figure func(layerError) float64) func(int) []float64 {
		return func(arm int) []float64 { return r.gradient(arm, figure) }
	}
	walked := func(arm int) []float64 { return r.walked(arm, summed) }
	return report.Fill(report.Table{Name: "gradients", Title: "Error of gradients against float64, in percent, mean of weights and seeds"},
		trainedArms(), armName,
		report.Mean("of a batch", of(relative)), report.Deviation("standard deviation", of(relative)),
		report.Mean("1 - cosine", of(distance)),
		report.Mean("bias", of(projection)), report.Deviation("standard deviation", of(projection)),
		report.Mean(fmt.Sprintf("of the mean of %d batches", r.study.batches), of(meanOver(r.study.batches))),
		report.Mean("squared error that is the same in all batches", of(persistent)),
		report.Mean(fmt.Sprintf("of the sum of %d steps", r.study.walk), walked), report.Deviation("standard deviation", walked))
}

func (r *results) additionTable() report.Table {
	of := func(figure func(additionError) float64) func(int) []float64 {
		return func(way int) []float64 { return r.added(way, figure) }
	}
	return report.Fill(report.Table{
		Name: "additions",
		Title: "Products of the same operands in E4M3 that are added in different ways, against exact " +
			"sums, in percent, mean of all products of a pass",
	}, report.Places(len(additions())), report.Cell("", func(way int) string { return additions()[way].name }),
		report.Mean("error", of(addedError)), report.Deviation("standard deviation", of(addedError)),
		report.Mean("bias", of(addedBias)), report.Deviation("standard deviation", of(addedBias)))
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

// curves are the training losses, in common and then apart.
func (r *results) curves() (all report.Curves) {
	for _, f := range r.seeds {
		all = append(all, report.Curve{Seed: f.seed, Arm: "common", Values: f.root})
		for i, a := range arms() {
			all = append(all, report.Curve{Seed: f.seed, Arm: a.name, First: r.study.common, Values: f.arms[i].losses})
		}
	}
	return all
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
