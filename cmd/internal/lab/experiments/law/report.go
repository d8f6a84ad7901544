package law

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
	"github.com/octavo-fp8/octavo/plan"
)

func newReport(p published, s *sweep) *report.Report {
	best := lowest(p.kumar)
	bestSun := lowest(p.sun)
	byLoss := func(a, b int) int {
		return cmp.Compare(statistics.Mean(s.equalCost(a)), statistics.Mean(s.equalCost(b)))
	}
	ranked := slices.SortedFunc(slices.Values(indices(s.widths)), byLoss)
	winner := s.widths[ranked[0]]
	loss := make(map[int]float64)
	for i, w := range s.widths {
		loss[w.bits] = statistics.Mean(s.equalCost(i))
	}
	cheap, dear := p.optima[0], p.optima[len(p.optima)-1]
	return &report.Report{
		Goals: []report.Goal{
			report.NewGoal("Kumar's law, 220 million parameters in 32 bits or more in fewer, 26 billion tokens: best bits", "from 6 to 8",
				fmt.Sprintf("%.0f, loss %.4f against %.4f in 32", best.Bits, best.Loss.Total, p.kumar[0].Loss.Total), best.Bits >= 6 && best.Bits <= 8),
			report.NewGoal("Kumar's law, all free: best bits", "7 to 8, whatever the cost",
				fmt.Sprintf("%.2f", p.best.Bits), p.best.Bits >= 6.95 && p.best.Bits <= 8.05),
			report.NewGoal("Own sweep at equal cost: FP8 against FP32", "a lower loss", fmt.Sprintf("%.3f against %.3f", loss[8], loss[32]), loss[8] < loss[32]).AtLength(),
			report.NewGoal("Own sweep at equal cost: FP4 against the better of FP6 and FP8", "a higher loss",
				fmt.Sprintf("%.3f against %.3f", loss[4], min(loss[6], loss[8])), loss[4] > min(loss[6], loss[8])).AtLength(),
		},
		Findings: []report.Finding{
			report.NewFinding(fmt.Sprintf("At that cost Kumar's law has its best at %.0f bits and Sun's at %.0f. What Sun's charges for precision grows with the tokens, what Kumar's charges does not.", best.Bits, bestSun.Bits),
				report.If(best.Bits != bestSun.Bits, "The two laws disagree.", "The two laws agree.")),
			report.NewFinding(fmt.Sprintf("As the cost rises from %.0e to %.0e FLOP, the best precision goes from %.1f to %.1f bits by Sun's law, and from %.1f to %.1f by Kumar's.", cheap.cost, dear.cost, cheap.sun, dear.sun, cheap.kumar, dear.kumar),
				report.If(dear.sun > cheap.sun, "Sun's wants more bits for more data;", "Sun's does not want more bits for more data;"),
				report.If(math.Abs(dear.kumar-cheap.kumar) < 0.05, "Kumar's does not.", "Kumar's best moves too.")),
			report.NewFinding("Kumar's law has an end, below which it has no loss.",
				report.If(p.tooFew != nil, fmt.Sprintf("Of 3 bits it says: %v.", p.tooFew), "3 bits are not below it.")),
			report.NewFinding(fmt.Sprintf("In our sweep at equal cost %s is best: loss %.3f, against %.3f in FP32.", winner.Name, loss[winner.bits], loss[32]),
				report.If(winner.bits < 32,
					fmt.Sprintf("That is %.1f %% less: the larger model wins.", 100*(1-loss[winner.bits]/loss[32])),
					"No larger model in fewer bits beats it.")),
			report.NewFinding(s.penalties()),
		},
		Limits: []string{
			fmt.Sprintf("Our models have %.2f to %.2f million parameters in their linear layers and see up to %d bytes. The laws were fitted on 30 million parameters and 1.5 billion tokens or more, and say nothing about so little. Models that are far from the end of their training, as ours may be, favour the larger.",
				float64(linearParams(s.jobs[0].Config))/1e6, float64(linearParams(s.jobs[len(s.widths)-1].Config))/1e6, s.bytes()),
			"FP6 (E3M2) and FP4 (E2M1) are rounded to, with a scale for each 1x128 or 128x128 block, and multiplied in FP32; their gradients are rounded at random. FP8 is real, and BF16 rounded too. Embedding, attention scores and head are FP32 in all, and count in no cost.",
			"The sweep's loss is the mean of the training loss over the last tenth of the steps, on text not seen before.",
		},
		Charts: []chart.Chart{lawChart(p), optimumChart(p), sweepChart(s)},
		Tables: []report.Table{lawTable(p), s.table(), optimumTable(p), s.curveTable()},
	}
}

func lowest(trainings []plan.Training) plan.Training {
	return slices.MinFunc(trainings, func(a, b plan.Training) int { return cmp.Compare(a.Loss.Total, b.Loss.Total) })
}

func indices[T any](values []T) (all []int) {
	for i := range values {
		all = append(all, i)
	}
	return all
}

// penalties says what fewer bits cost one model on the same data.
func (s *sweep) penalties() string {
	text := "The same model on the same data, against FP32:"
	for i, w := range s.widths[1:] {
		text += fmt.Sprintf(" %s %+.2f %%", w.Name, 100*(s.equalSize(i+1)/s.equalSize(0)-1))
		if i+2 < len(s.widths) {
			text += ","
		}
	}
	return text + "."
}

// bytes returns how many a model sees at most.
func (s *sweep) bytes() (most int) {
	for _, j := range s.jobs {
		most = max(most, j.Setup.Steps*s.batchSize)
	}
	return most
}

// lawChart shows both laws above their own best, since their losses are of different
// data.
func lawChart(p published) chart.Chart {
	c := chart.Chart{Title: "Published laws at equal cost: loss above the best", X: "bits", Y: "nats per token", Zero: true}
	for _, k := range slices.Backward(p.kumar) {
		c.Labels = append(c.Labels, fmt.Sprintf("%.0f", k.Bits))
	}
	for _, l := range []struct {
		name      string
		trainings []plan.Training
	}{{"Kumar et al.", p.kumar}, {"Sun et al.", p.sun}} {
		s := chart.Series{Name: l.name, Mark: chart.Joined}
		for i, t := range l.trainings { // the most bits first
			s.Points = append(s.Points, chart.Point{X: float64(len(l.trainings) - 1 - i), Y: t.Loss.Total - lowest(l.trainings).Loss.Total})
		}
		c.Series = append(c.Series, s)
	}
	return c
}

func optimumChart(p published) chart.Chart {
	c := chart.Chart{Title: "Published laws: best precision, parameters and tokens free", X: "cost, FLOP", Y: "bits", LogX: true, Lines: []chart.Reference{{Name: "FP8", Value: 8}, {Name: "FP4", Value: 4}}}
	kumar, sun := chart.Series{Name: "Kumar et al."}, chart.Series{Name: "Sun et al."}
	for _, o := range p.optima {
		kumar.Points = append(kumar.Points, chart.Point{X: o.cost, Y: o.kumar})
		sun.Points = append(sun.Points, chart.Point{X: o.cost, Y: o.sun})
	}
	c.Series = []chart.Series{kumar, sun}
	return c
}

func sweepChart(s *sweep) chart.Chart {
	c := chart.Chart{Title: "Own sweep: loss by precision", Y: "nats per byte"}
	cost := chart.Series{Name: "equal cost", Mark: chart.Joined}
	size := chart.Series{Name: "equal size and data", Mark: chart.Joined, Dashed: true}
	for i, w := range s.widths {
		c.Labels = append(c.Labels, w.Name)
		losses := s.equalCost(i)
		point := chart.Point{X: float64(i), Y: statistics.Mean(losses)}
		if len(losses) > 1 {
			point.Spread = (slices.Max(losses) - slices.Min(losses)) / 2
		}
		cost.Points = append(cost.Points, point)
		size.Points = append(size.Points, chart.Point{X: float64(i), Y: s.equalSize(i)})
	}
	c.Series = []chart.Series{cost, size}
	return c
}

func lawTable(p published) report.Table {
	t := report.Table{
		Name: "published", Title: "What the laws say: parameters times bits are 220 million times 32, 26 billion tokens",
		Columns: []string{"bits", "parameters, million", "loss, Kumar", "of that for precision", "format, Sun", "loss, Sun", "of that for precision"},
	}
	for i, k := range p.kumar {
		s := p.sun[i]
		t.Add(int(k.Bits), k.N/1e6, k.Loss.Total, k.Loss.Precision, fmt.Sprintf("E%.0fM%.0f", s.Format.Exponent, s.Format.Mantissa), s.Loss.Total, s.Loss.Precision)
	}
	return t
}

func optimumTable(p published) report.Table {
	t := report.Table{Name: "optimum", Title: "Best precision by cost", Raw: true, Columns: []string{"cost, FLOP", "bits, Kumar", "bits, Sun"}}
	for _, o := range p.optima {
		t.Add(o.cost, o.kumar, o.sun)
	}
	return t
}

func (s *sweep) table() report.Table {
	t := report.Table{
		Name: "sweep", Title: "Own sweep",
		Columns: []string{"run", "bits", "width", "parameters in linear layers", "steps", "cost, 10^12 bit-bytes", "loss, last tenth", "loss, held-out"},
	}
	for i, j := range s.jobs {
		t.Add(j.Name, s.widths[i%len(s.widths)].bits, j.Config.Dim, linearParams(j.Config), j.Setup.Steps, s.cost(i), s.curves[i].Last(), s.curves[i].HeldOut)
	}
	return t
}

func (s *sweep) curveTable() report.Table {
	t := report.Table{Name: "curves", Raw: true, Columns: []string{"run", "step", "loss"}}
	for i, j := range s.jobs {
		for step, loss := range s.curves[i].Losses {
			t.Add(j.Name, step, loss)
		}
	}
	return t
}
