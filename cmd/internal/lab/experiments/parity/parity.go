package parity

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
)

// Experiment is octavo lab parity.
var Experiment = lab.Experiment{
	Name:  "parity",
	Title: "Does FP8 training lose anything?",
	Claim: "With fine-grained scales, 1x128 for activations and gradients and 128x128 for weights, E4M3 throughout and amax just in time, " +
		"the loss of FP8 training stays within 0.25 % of BF16 training (DeepSeek-V3, arXiv 2412.19437, section 3.3 and appendix B.1).",
	Measure: measure,
}

// gradeOfGap is DeepSeek-V3's.
const gradeOfGap = 0.25 // percent

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	c := &comparison{ways: []training.Arithmetic{training.FP32(), training.BF16(), training.FP8()}, dim: lab.Pick(o, 128, 32), layers: lab.Pick(o, 4, 1)}
	form := training.Setup{
		Steps: lab.Pick(o, 300, 20), Batch: lab.Pick(o, 8, 2), Seq: lab.Pick(o, 128, 64),
		Rate: lab.Pick(o, 1e-3, 4e-3), Judged: lab.Pick(o, 32, 4),
	}
	var jobs []training.Job
	for i := range lab.Pick(o, 8, 2) {
		seed := o.Seed + uint64(i)
		l, err := training.NewSetup(o, seed, form)
		if err != nil {
			return nil, err
		}
		c.seeds = append(c.seeds, seed)
		for _, way := range c.ways {
			config := training.Llama(c.dim, c.layers, form.Seq)
			way.Use(&config)
			jobs = append(jobs, training.Job{Name: fmt.Sprintf("%s, seed %d", way.Name, seed), Config: config, Seed: seed, Setup: l})
		}
	}
	p.Expect(training.TotalSteps(jobs))
	var err error
	if c.curves, err = training.All(ctx, o, p, jobs); err != nil {
		return nil, err
	}
	c.setup = form
	return c.report(), nil
}

// comparison is of ways to multiply, over several seeds.
type comparison struct {
	setup       training.Setup
	dim, layers int
	ways        []training.Arithmetic
	seeds       []uint64
	curves      []training.Curve // by seed, and for each by way
}

func (c *comparison) curve(seed, way int) training.Curve { return c.curves[seed*len(c.ways)+way] }

// gap is by how many percent one loss is above another, for each seed.
func (c *comparison) gap(way, over int, loss func(training.Curve) float64) (percents []float64) {
	for seed := range c.seeds {
		percents = append(percents, 100*(loss(c.curve(seed, way))/loss(c.curve(seed, over))-1))
	}
	return percents
}

// lossKind is a loss by which runs are compared.
type lossKind struct {
	name string
	of   func(training.Curve) float64
}

func heldOut(c training.Curve) float64  { return c.HeldOut }
func lastLoss(c training.Curve) float64 { return c.Last() }

// lossKinds begins with DeepSeek-V3's. Batches of that one were not seen before, as
// long as the text is much longer than a training.
func lossKinds() []lossKind {
	return []lossKind{{"Training loss, last tenth of the steps,", lastLoss}, {"Held-out loss", heldOut}}
}

// The ways of parity.
const (
	fp32Way = iota
	bf16Way
	fp8Way
)

func (c *comparison) report() *report.Report {
	r := &report.Report{Charts: []chart.Chart{c.lossChart(), c.gapChart(), c.seedChart()}, Tables: []report.Table{c.gapTable(), c.lossTable(), c.curveTable()}}
	for _, over := range []int{bf16Way, fp32Way} {
		for _, kind := range lossKinds() {
			percents := c.gap(fp8Way, over, kind.of)
			_, ofMean := statistics.Spread(percents)
			r.Goals = append(r.Goals, report.NewGoal(
				fmt.Sprintf("%s of FP8 over that of %s, mean of %d seeds", kind.name, c.ways[over].Name, len(c.seeds)),
				fmt.Sprintf("within %v %%", gradeOfGap),
				fmt.Sprintf("%+.3f %% (standard error %.3f)", statistics.Mean(percents), ofMean),
				math.Abs(statistics.Mean(percents)) < gradeOfGap))
		}
	}
	noise, _ := statistics.Spread(c.gap(bf16Way, fp32Way, heldOut))
	between, _ := statistics.Spread(c.gap(fp8Way, fp32Way, heldOut))
	single := c.gap(fp8Way, bf16Way, lastLoss)
	r.Findings = []report.Finding{
		report.NewFinding(fmt.Sprintf("From seed to seed the gap in held-out loss has a standard deviation of %.2f %% between FP8 and FP32, and of %.2f %% between BF16 and FP32.", between, noise),
			report.If(between > gradeOfGap,
				fmt.Sprintf("That is more than the %v %% in question, so the gap of a single run says little.", gradeOfGap),
				fmt.Sprintf("That is no more than the %v %% in question, so the gap of a single run says something too.", gradeOfGap))),
		report.NewFinding(fmt.Sprintf("In training loss single runs have gaps between FP8 and BF16 from %+.3f to %+.3f %%, with a median of %+.3f; %d of %d are within %v %%.",
			slices.Min(single), slices.Max(single), statistics.Median(single), within(single, gradeOfGap), len(single), gradeOfGap)),
	}
	r.Limits = []string{
		fmt.Sprintf("Models have %d parameters and see %d bytes; DeepSeek-V3's figure is for models of 16 and 230 billion and a trillion tokens. What goes wrong late in training cannot show here.",
			c.curves[0].Params, c.setup.Steps*c.setup.Batch*c.setup.Seq),
		"BF16 rounds the operands and the results of the linear layers' products and adds in FP32; attention scores, norms and the optimizer are FP32 in all runs.",
	}
	return r
}

// within returns how many values are at most that far from 0.
func within(values []float64, most float64) (n int) {
	for _, v := range values {
		if math.Abs(v) <= most {
			n++
		}
	}
	return n
}

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

// overSeeds returns the mean of a figure over the seeds at each step.
func (c *comparison) overSeeds(figure func(seed, step int) float64) (points []chart.Point) {
	for step := range c.setup.Steps {
		var values []float64
		for seed := range c.seeds {
			values = append(values, figure(seed, step))
		}
		points = append(points, chart.Point{X: float64(step), Y: statistics.Mean(values)})
	}
	return points
}

func (c *comparison) lossChart() chart.Chart {
	all := chart.Chart{Title: "Training loss, mean of the seeds", X: "step", Y: "nats per byte"}
	for way, a := range c.ways {
		all.Series = append(all.Series, chart.Series{Name: a.Name, Points: c.overSeeds(func(seed, step int) float64 {
			return c.curve(seed, way).Losses[step]
		})})
	}
	return all
}

func (c *comparison) gapChart() chart.Chart {
	all := chart.Chart{Title: "Training loss above that of FP32 on the same batch, mean of the seeds", X: "step", Y: "percent"}
	for way, a := range c.ways[bf16Way:] {
		all.Series = append(all.Series, chart.Series{Name: a.Name, Points: c.overSeeds(func(seed, step int) float64 {
			return 100 * (c.curve(seed, bf16Way+way).Losses[step]/c.curve(seed, fp32Way).Losses[step] - 1)
		})})
	}
	return all
}

// seedChart shows the gaps of the seeds, and behind them their mean and its standard
// error.
func (c *comparison) seedChart() chart.Chart {
	all := chart.Chart{Title: "Held-out loss above that of FP32, by seed; at the end the mean and its standard error", X: "seed", Y: "percent"}
	for _, seed := range c.seeds {
		all.Labels = append(all.Labels, fmt.Sprint(seed))
	}
	all.Labels = append(all.Labels, "mean")
	for way, a := range c.ways[bf16Way:] {
		s := chart.Series{Name: a.Name, Mark: chart.Dots}
		percents := c.gap(bf16Way+way, fp32Way, heldOut)
		for i, v := range percents {
			s.Points = append(s.Points, chart.Point{X: float64(i), Y: v})
		}
		_, ofMean := statistics.Spread(percents)
		s.Points = append(s.Points, chart.Point{X: float64(len(percents)), Y: statistics.Mean(percents), Spread: ofMean})
		all.Series = append(all.Series, s)
	}
	return all
}
