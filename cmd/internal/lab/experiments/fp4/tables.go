package fp4

import (
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
)

// reference returns the way that another is compared with beside BF16: NVFP4 or MXFP4
// with all their parts.
func reference(way int) int {
	switch {
	case way == plainMXFP4Way:
		return mxfp4Way
	case way > nvfp4Way:
		return nvfp4Way
	}
	return bf16Way
}

// rowsOf returns a table with a row for each of a list.
func rowsOf[T any](t report.Table, list []T, row func(T) []any) report.Table {
	for _, of := range list {
		t.Add(row(of)...)
	}
	return t
}

// nameTable says what ways and roundings are.
func (s *study) nameTable() report.Table {
	t := report.Table{Name: "names", Title: "What the names mean", Columns: []string{"name", "meaning"}}
	t = rowsOf(t, s.ways, func(w way) []any { return []any{w.name, w.means} })
	return rowsOf(t, roundingWays(), func(w roundingWay) []any { return []any{"rounding " + w.name, w.means} })
}

func (s *study) effectTable() report.Table {
	t := report.Table{
		Name:    "effects",
		Title:   "Held-out loss, differences paired by seed, with 95 % intervals for all ways together: seen if zero is outside",
		Columns: []string{"way", "loss, nats per byte", "above BF16 %", "± %", "compared with", "above that %", "± of that %", "seen"},
	}
	for i, w := range s.ways {
		var losses []float64
		for seed := range s.seeds {
			losses = append(losses, s.curve(seed, i).HeldOut)
		}
		of, e := s.over(i, bf16Way), s.over(i, reference(i))
		t.Add(w.name, statistics.Mean(losses), of.At, of.half(), s.ways[reference(i)].name, e.At, e.half(), e.seen())
	}
	return t
}

func (s *study) lossTable() report.Table {
	t := report.Table{Name: "losses", Title: "Loss in nats per byte", Columns: []string{"seed", "way", "held-out", "training, last tenth of steps"}}
	for seed, number := range s.seeds {
		for i, w := range s.ways {
			t.Add(fmt.Sprint(number), w.name, s.curve(seed, i).HeldOut, s.curve(seed, i).Last())
		}
	}
	return t
}

func (s *study) roundingTable() report.Table {
	return rowsOf(report.Table{
		Name: "rounding", Title: "What rounding to NVFP4 loses, of the sum of squares",
		Columns: []string{"values", "rounding", "one rounding %", "mean of many %", "roundings"},
	}, s.meanRoundings(), func(r rounding) []any {
		return []any{r.values, r.way, 100 * r.once, 100 * r.ofMean, r.draws}
	})
}

func (s *study) divisionTable() report.Table {
	return rowsOf(report.Table{
		Name: "division", Title: fmt.Sprintf("Codes of E2M1 that differ between v/s and v·(1/s), for the %d positive scales of UE4M3", scaleCount),
		Columns: []string{"values", "number", "differ", "%", "example"},
	}, s.divisions, func(d division) []any {
		return []any{d.of, d.values, d.differ, 100 * d.share(), d.example}
	})
}

func (s *study) curveTable() report.Table {
	t := report.Table{Name: "curves", Raw: true, Columns: []string{"seed", "way", "step", "loss"}}
	for seed, number := range s.seeds {
		for i, w := range s.ways {
			for step, loss := range s.curve(seed, i).Losses {
				t.Add(fmt.Sprint(number), w.name, step, loss)
			}
		}
	}
	return t
}

// effectChart shows the means and their intervals.
func (s *study) effectChart() chart.Chart {
	c := chart.Chart{Y: "percent", Zero: true, Title: "Held-out loss above that of BF16, mean of the seeds, with 95 % intervals for all together; nvfp4 where only what it is without is named"}
	mean := chart.Series{Name: "mean", Mark: chart.Dots}
	for i, w := range s.ways {
		e := s.over(i, bf16Way)
		c.Labels = append(c.Labels, strings.TrimPrefix(w.name, "nvfp4 "))
		mean.Points = append(mean.Points, chart.Point{X: float64(i), Y: e.At, Spread: e.half()})
	}
	c.Series = []chart.Series{mean}
	return c
}

// seedChart shows the differences of each seed.
func (s *study) seedChart() chart.Chart {
	c := chart.Chart{Title: "Held-out loss above that of nvfp4, by seed", X: "seed", Y: "percent", Zero: true}
	for _, number := range s.seeds {
		c.Labels = append(c.Labels, fmt.Sprint(number))
	}
	for way := firstPart; way <= fourOverSixWay; way++ {
		of := chart.Series{Name: s.ways[way].name, Mark: chart.Joined}
		for i, percent := range s.over(way, nvfp4Way).bySeed {
			of.Points = append(of.Points, chart.Point{X: float64(i), Y: percent})
		}
		c.Series = append(c.Series, of)
	}
	return c
}

// gapChart shows how far training losses are apart over the steps.
func (s *study) gapChart() chart.Chart {
	c := chart.Chart{Title: "Training loss above that of BF16 on the same batch, mean of the seeds", X: "step", Y: "percent", Zero: true, Smooth: true}
	for way, w := range s.ways[1:] {
		of := chart.Series{Name: w.name}
		for step := range s.setup.Steps {
			var percents []float64
			for seed := range s.seeds {
				percents = append(percents, 100*(s.curve(seed, 1+way).Losses[step]/s.curve(seed, bf16Way).Losses[step]-1))
			}
			of.Points = append(of.Points, chart.Point{X: float64(step), Y: statistics.Mean(percents)})
		}
		c.Series = append(c.Series, of)
	}
	return c
}

// roundingChart has the ways to round as labels, and for each kind of values what one
// rounding loses and what the mean of many does.
func (s *study) roundingChart() chart.Chart {
	c := chart.Chart{Title: "What rounding to NVFP4 loses, of the sum of squares", Y: "percent", LogY: true}
	for _, values := range valueNames {
		once := chart.Series{Name: "one rounding, " + values, Mark: chart.Dots}
		many := chart.Series{Name: "mean of many, " + values, Mark: chart.Rings}
		c.Labels = nil
		for _, r := range s.meanRoundings() {
			if r.values != values {
				continue
			}
			x := float64(len(c.Labels))
			c.Labels = append(c.Labels, r.way)
			once.Points = append(once.Points, chart.Point{X: x, Y: 100 * r.once})
			many.Points = append(many.Points, chart.Point{X: x, Y: 100 * r.ofMean})
		}
		c.Series = append(c.Series, once, many)
	}
	return c
}
