package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/telemetry"
)

// trainee is a model in training and what hears of it.
type trainee struct {
	model     *nn.Llama
	optimizer optim.AdamW
	recorder  *telemetry.Recorder // nil: nobody
	update    func()              // called before the optimizer's step; nil: nothing
}

func newTrainee(b *testing.B, c nn.Config, heard bool) *trainee {
	m, err := nn.NewLlama(c, 1)
	if err != nil {
		b.Fatal(err)
	}
	t := &trainee{model: m, optimizer: optim.AdamW{Clip: 1}}
	if heard {
		t.recorder = telemetry.New()
		m.Listen(t.recorder)
	}
	return t
}

// step is a step of training: forward, backward, update.
func (t *trainee) step(ctx context.Context, tokens, targets []int32, batch, seq int) error {
	t.model.ZeroGrad()
	if _, err := t.model.Loss(ctx, tokens, targets, batch, seq); err != nil {
		return err
	}
	if err := t.model.Backward(ctx); err != nil {
		return err
	}
	if t.update != nil {
		t.update()
	}
	if _, err := t.optimizer.Step(ctx, t.model.Params(), 1e-3); err != nil {
		return err
	}
	t.model.EndStep()
	return t.recorder.Flush()
}

// trainingProducts are the products of a step, by the names of [BenchmarkTraining].
func trainingProducts() []struct {
	name string
	set  func(c *nn.Config)
} {
	rounded := func(f nn.NarrowFormat) func(*nn.Config) {
		return func(c *nn.Config) { r := nn.DefaultRounding(f); c.Rounding = &r }
	}
	return []struct {
		name string
		set  func(c *nn.Config)
	}{
		{"fp8", func(c *nn.Config) { r := nn.DefaultFP8(); c.FP8 = &r }},
		{"bf16", rounded(nn.NarrowBF16)},
		{"e2m1", rounded(nn.NarrowE2M1)},
	}
}

// BenchmarkTraining is a step of training a small Llama, in turn with FP32 and with other
// products: what machines that are shared do to the one they do to the other. ns/op is
// that of both; fp32-ms and other-ms are the medians of each, and ratio is the median of
// the ratios of neighbours, best that of the fastest steps. With heard=yes a
// telemetry.Recorder hears of each operand, as in octavo train, whose default is
// width=128/tokens=1024.
func BenchmarkTraining(b *testing.B) {
	for _, size := range []struct {
		width, hidden, layers, batch, seq int
	}{
		{128, 344, 4, 8, 128},
		{512, 1376, 2, 4, 128},
		{1024, 2752, 1, 4, 128},
	} {
		shape := nn.Config{Vocab: 256, Dim: size.width, Layers: size.layers, Heads: 4 * size.width / 128, Hidden: size.hidden, Context: size.seq}
		tokens, targets := bytesOf(size.batch*size.seq, 1), bytesOf(size.batch*size.seq, 2)
		for _, p := range trainingProducts() {
			for _, heard := range []bool{false, true} {
				if heard && p.name != "fp8" {
					continue // of other products there is nothing to hear
				}
				name := fmt.Sprintf("width=%d/tokens=%d/products=%s/heard=%s", size.width, len(tokens), p.name, map[bool]string{false: "no", true: "yes"}[heard])
				b.Run(name, func(b *testing.B) {
					other := shape
					p.set(&other)
					pair := [2]*trainee{newTrainee(b, shape, false), newTrainee(b, other, heard)}
					var times [2][]float64
					// Every second pair goes backwards, so that a machine that becomes slower is fair.
					for order := []int{0, 1}; b.Loop(); slices.Reverse(order) {
						for _, i := range order {
							t := pair[i]
							start := time.Now()
							if err := t.step(b.Context(), tokens, targets, size.batch, size.seq); err != nil {
								b.Fatal(err)
							}
							times[i] = append(times[i], time.Since(start).Seconds()*1e3)
						}
					}
					reportPair(b, times[0], times[1])
				})
			}
		}
	}
}

// bytesOf returns n bytes of a cheap generator as tokens.
func bytesOf(n int, seed uint32) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		seed = seed*1664525 + 1013904223
		tokens[i] = int32(seed >> 24)
	}
	return tokens
}

// reportPair reports the times of steps in FP32 and of others that took turns with them.
func reportPair(b *testing.B, fp32, other []float64) {
	reportTurns(b, "fp32-ms", "other-ms", fp32, other)
}

// reportTurns reports the times of two kinds of steps that took turns.
func reportTurns(b *testing.B, firstName, otherName string, first, other []float64) {
	ratios := make([]float64, len(first))
	for i := range ratios {
		ratios[i] = other[i] / first[i]
	}
	median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
	b.ReportMetric(median(first), firstName)
	b.ReportMetric(median(other), otherName)
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(slices.Min(other)/slices.Min(first), "best")
}
