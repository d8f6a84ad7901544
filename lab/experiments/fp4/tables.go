package fp4

import (
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
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

// named is a name and what it means.
type named struct{ name, means string }

// nameTable says what ways and roundings are.
func (s *study) nameTable() report.Table {
	var all []named
	for _, w := range s.ways {
		all = append(all, named{w.name, w.means})
	}
	for _, w := range roundingWays() {
		all = append(all, named{"rounding " + w.name, w.means})
	}
	return report.Fill(report.Table{Name: "names", Title: "What the names mean"}, all,
		report.Cell("name", func(n named) string { return n.name }), report.Cell("meaning", func(n named) string { return n.means }))
}

func (s *study) effectTable() report.Table {
	beside := func(i int) effect { return s.over(i, reference(i)) }
	return report.Fill(report.Table{
		Name: "effects", Title: "Held-out loss, differences paired by seed, with 95 % intervals for all ways together: seen if zero is outside",
	}, report.Places(len(s.ways)),
		report.Cell("way", func(i int) string { return s.ways[i].name }), report.Mean("loss, nats per byte", s.heldOut),
		report.Cell("above BF16 %", func(i int) float64 { return s.over(i, bf16Way).At }), report.Cell("± %", func(i int) float64 { return s.over(i, bf16Way).half() }),
		report.Cell("compared with", func(i int) string { return s.ways[reference(i)].name }),
		report.Cell("above that %", func(i int) float64 { return beside(i).At }), report.Cell("± of that %", func(i int) float64 { return beside(i).half() }),
		report.Cell("seen", func(i int) bool { return beside(i).seen() }))
}

func (s *study) lossTable() report.Table {
	return report.Fill(report.Table{Name: "losses", Title: "Loss in nats per byte"}, report.Places(len(s.seeds)*len(s.ways)),
		report.Cell("seed", func(i int) string { return fmt.Sprint(s.seeds[i/len(s.ways)]) }), report.Cell("way", func(i int) string { return s.ways[i%len(s.ways)].name }),
		report.Cell("held-out", func(i int) float64 { return s.curves[i].HeldOut }), report.Cell("training, last tenth of steps", func(i int) float64 { return s.curves[i].Last() }))
}

func (s *study) roundingTable() report.Table {
	return report.Fill(report.Table{Name: "rounding", Title: "What rounding to NVFP4 loses, of the sum of squares"}, s.meanRoundings(),
		report.Cell("values", func(r rounding) string { return r.values }), report.Cell("rounding", func(r rounding) string { return r.way }),
		report.Cell("one rounding %", func(r rounding) float64 { return 100 * r.once }), report.Cell("mean of many %", func(r rounding) float64 { return 100 * r.ofMean }),
		report.Cell("roundings", func(r rounding) int { return r.draws }))
}

func (s *study) divisionTable() report.Table {
	return report.Fill(report.Table{
		Name: "division", Title: fmt.Sprintf("Codes of E2M1 that differ between v/s and v·(1/s), for the %d positive scales of UE4M3", scaleCount),
	}, s.divisions,
		report.Cell("values", func(d division) string { return d.of }), report.Cell("number", func(d division) int { return d.values }),
		report.Cell("differ", func(d division) int { return d.differ }), report.Cell("%", func(d division) float64 { return 100 * d.share() }),
		report.Cell("example", func(d division) string { return d.example }))
}

// losses are the training losses.
func (s *study) losses() (all report.Curves) {
	for i, seed := range s.seeds {
		for way, w := range s.ways {
			all = append(all, report.Curve{Seed: seed, Arm: w.name, Values: s.curve(i, way).Losses})
		}
	}
	return all
}

// effectChart shows the means and their intervals.
func (s *study) effectChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Y: "percent", Zero: true, Title: "Held-out loss above that of BF16, mean of the seeds, with 95 % intervals for all together; nvfp4 where only what it is without is named"}}
	for i, w := range s.ways {
		e := s.over(i, bf16Way)
		p.AddPoint(chart.Series{Name: "mean", Mark: chart.Dots}, strings.TrimPrefix(w.name, "nvfp4 "), chart.Point{Y: e.At, Spread: e.half()})
	}
	return p.Chart
}

// seedChart shows the differences of each seed.
func (s *study) seedChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Held-out loss above that of nvfp4, by seed", X: "seed", Y: "percent", Zero: true}}
	for way := firstPart; way <= fourOverSixWay; way++ {
		for i, percent := range s.over(way, nvfp4Way).bySeed {
			p.Add(chart.Series{Name: s.ways[way].name, Mark: chart.Joined}, s.seeds[i], percent)
		}
	}
	return p.Chart
}

// gapChart shows how far training losses are apart over the steps.
func (s *study) gapChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Training loss above that of BF16 on the same batch, mean of the seeds", X: "step", Y: "percent", Zero: true, Smooth: true}}
	for _, w := range s.ways[1:] {
		p.AddCurves(s.losses().Above(w.name, s.ways[bf16Way].name), chart.Series{Name: w.name})
	}
	return p.Chart
}

// roundingChart has the ways to round as labels, and for each kind of values what one
// rounding loses and what the mean of many does.
func (s *study) roundingChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "What rounding to NVFP4 loses, of the sum of squares", Y: "percent", LogY: true}}
	for _, r := range s.meanRoundings() {
		p.Add(chart.Series{Name: "one rounding, " + r.values, Mark: chart.Dots}, r.way, 100*r.once)
		p.Add(chart.Series{Name: "mean of many, " + r.values, Mark: chart.Rings}, r.way, 100*r.ofMean)
	}
	return p.Chart
}
