package parity

import (
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
)

func (c *comparison) gapTable() report.Table {
	t := report.Table{
		Name: "gaps", Title: "Gap in loss over the seeds",
		Columns: []string{"", "last tenth, mean %", "standard deviation", "standard error", "held-out, mean %", "standard deviation", "standard error"},
	}
	for _, pair := range [][2]int{{fp8Way, bf16Way}, {fp8Way, fp32Way}, {bf16Way, fp32Way}} {
		row := []any{c.ways[pair[0]].Name + " over " + c.ways[pair[1]].Name}
		for _, kind := range lossKinds() {
			percents := c.gap(pair[0], pair[1], kind.of)
			deviation, ofMean := statistics.Spread(percents)
			row = append(row, statistics.Mean(percents), deviation, ofMean)
		}
		t.Add(row...)
	}
	return t
}

func (c *comparison) lossTable() report.Table {
	t := report.Table{Name: "losses", Title: "Loss in nats per byte", Columns: []string{"seed", "precision", "held-out", "last tenth"}}
	for seed, number := range c.seeds {
		for way, a := range c.ways {
			run := c.curve(seed, way)
			t.Add(fmt.Sprint(number), a.Name, run.HeldOut, run.Last())
		}
	}
	return t
}

func (c *comparison) curveTable() report.Table {
	t := report.Table{Name: "curves", Raw: true, Columns: []string{"seed", "precision", "step", "loss"}}
	for seed, number := range c.seeds {
		for way, a := range c.ways {
			for step, loss := range c.curve(seed, way).Losses {
				t.Add(fmt.Sprint(number), a.Name, step, loss)
			}
		}
	}
	return t
}
