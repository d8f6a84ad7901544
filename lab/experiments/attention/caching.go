package attention

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/generate"
)

// The ways to keep keys and values, by their places in keepings.
const (
	inBF16 = iota
	byToken
	byHead
	byLayer
	unscaled
	tooLarge
	tooSmall
)

// keeping is a way to keep keys and values.
type keeping struct {
	name    string
	options func(keys, values amaxes) generate.Options
}

// amaxes are the largest magnitudes that calibration saw, of each head of each layer.
type amaxes [][]float32

func keepings() []keeping {
	return []keeping{
		{"BF16", func(_, _ amaxes) generate.Options { return generate.Options{Cache: generate.CacheBF16} }},
		{"E4M3, a scale for each token and head", func(_, _ amaxes) generate.Options { return generate.Options{} }},
		{"E4M3, one for each head", static(func(a amaxes) []float32 { return a.scales(1) })},
		{"E4M3, one for each layer", static(func(a amaxes) []float32 { return a.layers().scales(1) })},
		{"E4M3, scale 1", static(func(a amaxes) []float32 { return slices.Repeat([]float32{1}, len(a)) })},
		{"control: one for each layer, 2^17 too large", static(func(a amaxes) []float32 { return a.layers().scales(1 << 17) })},
		{"control: one for each layer, 2^4 too small", static(func(a amaxes) []float32 { return a.layers().scales(1. / 16) })},
	}
}

// static returns options with scales that are given.
func static(scales func(amaxes) []float32) func(keys, values amaxes) generate.Options {
	return func(keys, values amaxes) generate.Options {
		return generate.Options{KeyScales: scales(keys), ValueScales: scales(values)}
	}
}

// layers returns the largest of the heads of each layer.
func (a amaxes) layers() (all amaxes) {
	for _, heads := range a {
		all = append(all, []float32{slices.Max(heads)})
	}
	return all
}

// scales makes the largest magnitude the format's, and multiplies by a factor.
func (a amaxes) scales(factor float32) (all []float32) {
	for _, amax := range slices.Concat(a...) {
		all = append(all, max(amax/fp8.E4M3.Max(), 1e-6)*factor)
	}
	return all
}

// see notes keys or values, [tokens, heads·dim], of a layer.
func (a amaxes) see(layer int, x []float32, cols int) {
	dim := cols / len(a[layer])
	for i := 0; i < len(x); i += dim {
		h := i % cols / dim
		amax, _ := fp8.Amax(x[i : i+dim])
		a[layer][h] = max(a[layer][h], amax)
	}
}

func newAmaxes(c nn.Config) amaxes {
	a := make(amaxes, c.Layers)
	for i := range a {
		a[i] = make([]float32, c.KVHeads)
	}
	return a
}

// caching is what ways to keep keys and values cost models.
type caching struct {
	config     nn.Config
	early      training.Setup // steps, and windows of those, before those of the whole context
	calibrated int            // windows
	models     []*cachedModel
}

// cachedModel is one of the models.
type cachedModel struct {
	seed    uint64
	setup   training.Setup
	workers int

	run          *trial.Run
	keys, values amaxes

	// losses are the means of each way, window and range of positions; the last range is
	// the whole window.
	losses [][][]float64
}

func newCaching(o lab.Options) (*caching, error) {
	c := &caching{config: training.Llama(lab.Pick(o, 64, 64, 32), 2, lab.Pick(o, 512, 512, 128)), calibrated: lab.Pick(o, 8, 8, 2)}
	c.early = training.Setup{Steps: lab.Pick(o, 3000, 3000, 4), Batch: 1, Seq: lab.Pick(o, 128, 128, 32)}
	for i := range lab.Pick(o, uint64(3), uint64(2), 1) {
		s, err := training.NewSetup(o, o.Seed+i, training.Setup{
			Steps: c.early.Steps + lab.Pick(o, 500, 500, 4), Batch: 1, Seq: c.config.Context, Rate: 3e-3, Judged: lab.Pick(o, 256, 64, 4)})
		if err != nil {
			return nil, err
		}
		c.models = append(c.models, &cachedModel{seed: o.Seed + i, setup: s})
	}
	return c, nil
}

// ends are where ranges of positions end; each begins where the one before ends.
func (c *caching) ends() []int {
	n := c.config.Context
	return []int{n / 8, n / 4, n / 2, n}
}

// whole is the place of the range of all positions.
func (c *caching) whole() int { return len(c.ends()) }

// between returns the first and the last position of a range, from 1 on.
func (c *caching) between(part int) (first, last int) {
	ends := c.ends()
	switch part {
	case 0:
		return 1, ends[0]
	case c.whole():
		return 1, ends[part-1]
	}
	return ends[part-1] + 1, ends[part]
}

// jobs train a model, and run it with each cache.
func (c *caching) jobs(index int) (jobs []job) {
	m := c.models[index]
	name := fmt.Sprintf("model of seed %d", m.seed)
	for step := range m.setup.Steps {
		s := c.at(m, step)
		jobs = append(jobs, job{"training " + name, 3 * c.work(s.Batch*s.Seq), func(ctx context.Context) error { return c.train(ctx, m, step) }})
	}
	jobs = append(jobs, job{"calibrating " + name, c.work(c.calibrated * c.config.Context), func(ctx context.Context) error { return c.calibrate(ctx, m) }})
	for _, k := range keepings() {
		jobs = append(jobs, job{name + ", " + k.name, 2 * c.work(m.setup.Judged*c.config.Context), func(ctx context.Context) error { return c.judge(ctx, m, k) }})
	}
	return jobs
}

// work is what so many bytes are to a model, in products as slow as those of other parts.
func (c *caching) work(bytes int) int {
	const faster = 30
	n := c.config
	return bytes * n.Layers * n.Dim * (4*n.Dim + 3*n.Hidden + n.Context) / faster
}

// at returns the setup of a step.
func (c *caching) at(m *cachedModel, step int) training.Setup {
	s := m.setup
	if step < c.early.Steps {
		s.Batch, s.Seq = c.early.Batch, c.early.Seq
	}
	return s
}

func (c *caching) train(ctx context.Context, m *cachedModel, step int) (err error) {
	if step == 0 {
		config := c.config
		config.Workers = m.workers
		if m.run, err = trial.New("a model with a cache", config, m.seed); err != nil {
			return err
		}
	}
	_, err = c.at(m, step).Step(ctx, m.run, step, m.setup.Schedule().At(step))
	return err
}

// calibrate notes the largest keys, with their positions, and values of windows of the
// training text.
func (c *caching) calibrate(ctx context.Context, m *cachedModel) error {
	model := m.run.Model
	m.keys, m.values = newAmaxes(model.Config()), newAmaxes(model.Config())
	layers := map[string]int{}
	for i := range c.config.Layers {
		layers[fmt.Sprintf("model.layers.%d.self_attn", i)] = i
	}
	model.Shared().Tap = func(name string, x []float32, _, cols int) {
		if layer, ok := strings.CutSuffix(name, ".key"); ok {
			m.keys.see(layers[layer], x, cols)
		} else if layer, ok := strings.CutSuffix(name, ".value"); ok {
			m.values.see(layers[layer], x, cols)
		}
	}
	defer func() { model.Shared().Tap = nil }()
	for i := range c.calibrated {
		tokens, _, err := m.setup.Corpus.Batch(m.setup.Steps+i, 1, c.config.Context)
		if err != nil {
			return err
		}
		if _, err := model.Logits(ctx, tokens, 1, c.config.Context); err != nil {
			return err
		}
	}
	return nil
}

// judge finds the losses of all windows with a cache.
func (c *caching) judge(ctx context.Context, m *cachedModel, k keeping) error {
	o := k.options(m.keys, m.values)
	o.Workers = m.workers
	g, err := generate.New(ctx, m.run.Model, o)
	if err != nil {
		return err
	}
	s, err := g.NewSequence(0)
	if err != nil {
		return err
	}
	var windows [][]float64
	for i := range m.setup.Judged {
		tokens, targets, err := m.setup.Corpus.HeldOut(i, 1, c.config.Context)
		if err != nil {
			return err
		}
		s.Truncate(0)
		logits, err := g.Logits(ctx, []*generate.Sequence{s}, [][]int32{tokens})
		if err != nil {
			return err
		}
		windows = append(windows, c.means(lossesOf(logits, targets)))
	}
	m.losses = append(m.losses, windows)
	return nil
}

// lossesOf returns the negative logarithms of the probabilities of targets.
func lossesOf(logits []float32, targets []int32) (losses []float64) {
	vocab := len(logits) / len(targets)
	for i, t := range targets {
		row := logits[i*vocab:][:vocab]
		top := float64(slices.Max(row))
		var sum float64
		for _, x := range row {
			sum += math.Exp(float64(x) - top)
		}
		losses = append(losses, math.Log(sum)+top-float64(row[t]))
	}
	return losses
}

// means returns the mean of each range of positions.
func (c *caching) means(losses []float64) (means []float64) {
	for part := range c.whole() + 1 {
		first, last := c.between(part)
		means = append(means, statistics.Mean(losses[first-1:last]))
	}
	return means
}

// loss returns the mean loss of a way over a range.
func (c *caching) loss(way, part int) float64 {
	return statistics.Mean(c.byWindow(func(m *cachedModel, w int) float64 { return m.losses[way][w][part] }))
}

// costs returns by how much a way's loss over a range is above that of another, by window:
// windows are independent, the models' losses of one are not.
func (c *caching) costs(way, than, part int) []float64 {
	return c.byWindow(func(m *cachedModel, w int) float64 { return m.losses[way][w][part] - m.losses[than][w][part] })
}

// cost returns the mean of costs, and two standard errors of it.
func (c *caching) cost(way, than, part int) (mean, twice float64) {
	return summed(c.costs(way, than, part))
}

// growths returns by how much a way's cost is larger in the last range than in the first.
func (c *caching) growths(way int) []float64 {
	last := c.whole() - 1
	return c.byWindow(func(m *cachedModel, w int) float64 {
		return m.losses[way][w][last] - m.losses[inBF16][w][last] - (m.losses[way][w][0] - m.losses[inBF16][w][0])
	})
}

// gains returns by how much the loss in BF16 is less in the last range than in the first.
func (c *caching) gains() []float64 {
	last := c.whole() - 1
	return c.byWindow(func(m *cachedModel, w int) float64 { return m.losses[inBF16][w][0] - m.losses[inBF16][w][last] })
}

// byWindow returns a figure of each window, its mean over the models.
func (c *caching) byWindow(figure func(m *cachedModel, window int) float64) (values []float64) {
	for w := range c.models[0].losses[inBF16] {
		var sum float64
		for _, m := range c.models {
			sum += figure(m, w)
		}
		values = append(values, sum/float64(len(c.models)))
	}
	return values
}

func summed(values []float64) (mean, twice float64) {
	_, ofMean := statistics.Spread(values)
	return statistics.Mean(values), 2 * ofMean
}

// most returns the largest cost over BF16 of any range, with an interval as of so many in a
// family: below a limit are all ranges if the highest end is, above it some range if the
// highest of the lower ends is.
func (c *caching) most(way, family int) (all statistics.Interval) {
	for part := range c.whole() + 1 {
		of := statistics.OfMean(c.costs(way, inBF16, part), family)
		if part == 0 {
			all = of
		}
		all = statistics.Interval{At: max(all.At, of.At), Low: max(all.Low, of.Low), High: max(all.High, of.High)}
	}
	return all
}
