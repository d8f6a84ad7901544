package lab

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/nn"
)

var parity = Experiment{
	Name:  "parity",
	Title: "FP8 training loses next to nothing",
	Claim: "With fine-grained scales, 1x128 for activations and gradients and 128x128 for weights, E4M3 throughout and amax just in time, " +
		"the loss of FP8 training stays within 0.25 % of BF16 training (DeepSeek-V3, arXiv 2412.19437, section 3.3 and appendix B.1).",
	run: runParity,
}

// arithmetic is a way to multiply in linear layers.
type arithmetic struct {
	name string
	use  func(*nn.Config)
}

func inFP32() arithmetic { return arithmetic{"FP32", func(*nn.Config) {}} }
func inBF16() arithmetic {
	return arithmetic{"BF16", func(c *nn.Config) {
		r := nn.DefaultRounding(nn.NarrowBF16)
		c.Rounding = &r
	}}
}

func inFP8() arithmetic {
	return arithmetic{"FP8", func(c *nn.Config) {
		recipes := nn.DefaultFP8()
		c.FP8 = &recipes
	}}
}

// gradeOfGap is DeepSeek-V3's.
const gradeOfGap = 0.25 // percent

func runParity(ctx context.Context, o Options, p *Progress) (*Report, error) {
	c := &comparison{ways: []arithmetic{inFP32(), inBF16(), inFP8()}, dim: pick(o, 128, 32), layers: pick(o, 4, 1)}
	form := lesson{
		steps: pick(o, 300, 20), batch: pick(o, 8, 2), seq: pick(o, 128, 64),
		rate: pick(o, 1e-3, 4e-3), judged: pick(o, 32, 4),
	}
	var jobs []job
	for i := range pick(o, 8, 2) {
		seed := o.Seed + uint64(i)
		l, err := newLesson(o, seed, form)
		if err != nil {
			return nil, err
		}
		c.seeds = append(c.seeds, seed)
		for _, way := range c.ways {
			config := llama(c.dim, c.layers, form.seq)
			way.use(&config)
			jobs = append(jobs, job{name: fmt.Sprintf("%s, seed %d", way.name, seed), config: config, seed: seed, lesson: l})
		}
	}
	p.total(totalSteps(jobs))
	var err error
	if c.curves, err = trainAll(ctx, o, p, jobs); err != nil {
		return nil, err
	}
	c.lesson = form
	return c.report(), nil
}

// comparison is of ways to multiply, over several seeds.
type comparison struct {
	lesson      lesson
	dim, layers int
	ways        []arithmetic
	seeds       []uint64
	curves      []curve // by seed, and for each by way
}

func (c *comparison) curve(seed, way int) curve { return c.curves[seed*len(c.ways)+way] }

// gap is by how many percent one loss is above another, for each seed.
func (c *comparison) gap(way, over int, loss func(curve) float64) (percents []float64) {
	for seed := range c.seeds {
		percents = append(percents, 100*(loss(c.curve(seed, way))/loss(c.curve(seed, over))-1))
	}
	return percents
}

// lossKind is a loss by which runs are compared.
type lossKind struct {
	name string
	of   func(curve) float64
}

func heldOut(c curve) float64  { return c.heldOut }
func lastLoss(c curve) float64 { return c.last() }

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

func (c *comparison) report() *Report {
	r := &Report{Charts: []chart.Chart{c.lossChart(), c.gapChart(), c.seedChart()}, Tables: []Table{c.gapTable(), c.lossTable(), c.curveTable()}}
	for _, over := range []int{bf16Way, fp32Way} {
		for _, kind := range lossKinds() {
			percents := c.gap(fp8Way, over, kind.of)
			_, ofMean := spread(percents)
			r.Goals = append(r.Goals, Goal{
				fmt.Sprintf("%s of FP8 over that of %s, mean of %d seeds", kind.name, c.ways[over].name, len(c.seeds)),
				fmt.Sprintf("within %v %%", gradeOfGap),
				fmt.Sprintf("%+.3f %% (standard error %.3f)", mean(percents), ofMean),
				math.Abs(mean(percents)) < gradeOfGap,
			})
		}
	}
	noise, _ := spread(c.gap(bf16Way, fp32Way, heldOut))
	between, _ := spread(c.gap(fp8Way, fp32Way, heldOut))
	single := c.gap(fp8Way, bf16Way, lastLoss)
	r.Findings = []string{
		fmt.Sprintf("From seed to seed the gap in held-out loss has a standard deviation of %.2f %% between FP8 and FP32, and of %.2f %% between BF16 and FP32: what a run loses or gains by rounding at the start grows, so that one run's gap says little.", between, noise),
		fmt.Sprintf("In training loss single runs have gaps between FP8 and BF16 from %+.3f to %+.3f %%, with a median of %+.3f; %d of %d are within %v %%.",
			slices.Min(single), slices.Max(single), median(single), within(single, gradeOfGap), len(single), gradeOfGap),
	}
	r.Limits = []string{
		fmt.Sprintf("Models have %d parameters and see %d bytes; DeepSeek-V3's figure is for models of 16 and 230 billion and a trillion tokens. What goes wrong late in training cannot show here.",
			c.curves[0].params, c.lesson.steps*c.lesson.batch*c.lesson.seq),
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

func (c *comparison) gapTable() Table {
	t := Table{
		Name: "gaps", Title: "Gap in loss over the seeds",
		Columns: []string{"", "last tenth, mean %", "standard deviation", "standard error", "held-out, mean %", "standard deviation", "standard error"},
	}
	for _, pair := range [][2]int{{fp8Way, bf16Way}, {fp8Way, fp32Way}, {bf16Way, fp32Way}} {
		row := []any{c.ways[pair[0]].name + " over " + c.ways[pair[1]].name}
		for _, kind := range lossKinds() {
			percents := c.gap(pair[0], pair[1], kind.of)
			deviation, ofMean := spread(percents)
			row = append(row, mean(percents), deviation, ofMean)
		}
		t.add(row...)
	}
	return t
}

func (c *comparison) lossTable() Table {
	t := Table{Name: "losses", Title: "Loss in nats per byte", Columns: []string{"seed", "precision", "held-out", "last tenth"}}
	for seed, number := range c.seeds {
		for way, a := range c.ways {
			run := c.curve(seed, way)
			t.add(fmt.Sprint(number), a.name, run.heldOut, run.last())
		}
	}
	return t
}

func (c *comparison) curveTable() Table {
	t := Table{Name: "curves", Raw: true, Columns: []string{"seed", "precision", "step", "loss"}}
	for seed, number := range c.seeds {
		for way, a := range c.ways {
			for step, loss := range c.curve(seed, way).losses {
				t.add(fmt.Sprint(number), a.name, step, loss)
			}
		}
	}
	return t
}

// overSeeds returns the mean of a figure over the seeds at each step.
func (c *comparison) overSeeds(figure func(seed, step int) float64) (points []chart.Point) {
	for step := range c.lesson.steps {
		var values []float64
		for seed := range c.seeds {
			values = append(values, figure(seed, step))
		}
		points = append(points, chart.Point{X: float64(step), Y: mean(values)})
	}
	return points
}

func (c *comparison) lossChart() chart.Chart {
	all := chart.Chart{Title: "Training loss, mean of the seeds", X: "step", Y: "nats per byte"}
	for way, a := range c.ways {
		all.Series = append(all.Series, chart.Series{Name: a.name, Points: c.overSeeds(func(seed, step int) float64 {
			return c.curve(seed, way).losses[step]
		})})
	}
	return all
}

func (c *comparison) gapChart() chart.Chart {
	all := chart.Chart{Title: "Training loss above that of FP32 on the same batch, mean of the seeds", X: "step", Y: "percent"}
	for way, a := range c.ways[bf16Way:] {
		all.Series = append(all.Series, chart.Series{Name: a.name, Points: c.overSeeds(func(seed, step int) float64 {
			return 100 * (c.curve(seed, bf16Way+way).losses[step]/c.curve(seed, fp32Way).losses[step] - 1)
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
		s := chart.Series{Name: a.name, Mark: chart.Dots}
		percents := c.gap(bf16Way+way, fp32Way, heldOut)
		for i, v := range percents {
			s.Points = append(s.Points, chart.Point{X: float64(i), Y: v})
		}
		_, ofMean := spread(percents)
		s.Points = append(s.Points, chart.Point{X: float64(len(percents)), Y: mean(percents), Spread: ofMean})
		all.Series = append(all.Series, s)
	}
	return all
}
