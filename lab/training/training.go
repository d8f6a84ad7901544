// Package training trains the small models of the experiments of octavo lab.
package training

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/train"
)

// Setup is what is trained on, how and for how long: the same for all runs that are
// compared.
type Setup struct {
	Corpus *train.Corpus
	Steps  int
	Batch  int // sequences in a step
	Seq    int // bytes in a sequence
	Rate   float64
	Judged int // held-out batches
}

// NewSetup returns a setup on the text of o. Its seed decides which windows of the
// text a step sees.
func NewSetup(o lab.Options, seed uint64, s Setup) (Setup, error) {
	var err error
	if s.Corpus, err = train.NewCorpus(o.Text.Data, s.Judged*s.Batch*s.Seq+1, seed); err != nil {
		return s, fmt.Errorf("%s has %d bytes, which is too short for %d held-out batches of %d x %d: name a longer one with --text",
			o.Text.Source, o.Text.Bytes, s.Judged, s.Batch, s.Seq)
	}
	return s, nil
}

// Schedule returns the learning rates: warm-up, then a cosine down to a tenth.
func (s Setup) Schedule() optim.Schedule {
	return optim.Schedule{Peak: s.Rate, Final: 0.1, Warmup: max(s.Steps/10, 1), Steps: s.Steps}
}

// Llama returns a byte-level model: four heads, an MLP of 8/3 of the width.
func Llama(dim, layers, context int) nn.Config {
	return nn.Config{Vocab: 256, Dim: dim, Layers: layers, Heads: 4, Hidden: (8*dim/3 + 7) / 8 * 8, Context: context}
}

// Job is a model in training under a setup.
type Job struct {
	Name   string
	Config nn.Config // Workers are set by All
	Seed   uint64    // of the first weights
	Setup  Setup

	Moments optim.Moments // of the optimizer
}

// Curve is what comes of a job.
type Curve struct {
	Losses  []float64 // of each step's batch, before it
	HeldOut float64   // mean loss on the held-out text, after the last step
	Params  int

	Activations nn.ActivationBytes // kept for the backward pass
	MomentBytes int
}

// Last returns the mean loss of the last tenth of the steps.
func (c Curve) Last() float64 { return statistics.Mean(c.Losses[len(c.Losses)-(len(c.Losses)+9)/10:]) }

// All does all jobs side by side. Each step of each job is a step of the progress.
// Results do not depend on what runs beside them.
func All(ctx context.Context, o lab.Options, p *lab.Steps, jobs []Job) ([]Curve, error) {
	curves := make([]Curve, len(jobs))
	err := SideBySide(ctx, o, len(jobs), func(ctx context.Context, i, workers int) (err error) {
		jobs[i].Config.Workers = workers
		if curves[i], err = jobs[i].do(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", jobs[i].Name, err)
		}
		return nil
	})
	return curves, err
}

// Work returns how much All will do, in the units of the steps of its progress.
func Work(jobs []Job) (all int64) {
	for _, j := range jobs {
		all += int64(j.Setup.Steps)*j.stepWork() + j.judgeWork()
	}
	return all
}

// forwardWork is about what a forward pass over a batch takes: it grows with the values
// that each token is multiplied by.
func (j Job) forwardWork() int64 {
	c := j.Config
	values := c.Layers*c.Dim*(4*c.Dim+3*c.Hidden) + c.Vocab*c.Dim
	return int64(values) * int64(j.Setup.Batch*j.Setup.Seq)
}

// stepWork is that of a step: its backward pass takes two times the forward pass.
func (j Job) stepWork() int64 { return 3 * j.forwardWork() }

// judgeWork is that of the held-out loss.
func (j Job) judgeWork() int64 { return int64(j.Setup.Judged) * j.forwardWork() }

func (j Job) do(ctx context.Context, p *lab.Steps) (Curve, error) {
	run, err := trial.New(j.Name, j.Config, j.Seed)
	if err != nil {
		return Curve{}, err
	}
	run.Optimizer.Moments = j.Moments
	c := Curve{Params: run.Params()}
	schedule := j.Setup.Schedule()
	for step := range j.Setup.Steps {
		f, err := j.Setup.Step(ctx, run, step, schedule.At(step))
		if err != nil {
			return c, err
		}
		c.Losses = append(c.Losses, f.Loss)
		if err := p.Done(ctx, j.Name, j.stepWork()); err != nil {
			return c, err
		}
	}
	c.Activations, c.MomentBytes = run.Model.ActivationBytes(), run.Optimizer.MomentBytes()
	if c.HeldOut, err = j.Setup.HeldOut(ctx, run.Model); err != nil {
		return c, err
	}
	return c, p.Done(ctx, j.Name, j.judgeWork())
}

// AtMostUniform returns a loss in nats, and at most that of a uniform guess among so many
// tokens: what a model that diverged is worth, whose loss may be no number.
func AtMostUniform(loss float64, vocab int) float64 {
	if uniform := math.Log(float64(vocab)); !(loss < uniform) {
		return uniform
	}
	return loss
}

// Batch is a part of a text, [Sequences, Seq].
type Batch struct {
	Tokens, Targets []int32
	Sequences, Seq  int
}

// At returns the batch of a step.
func (s Setup) At(step int) (Batch, error) {
	tokens, targets, err := s.Corpus.Batch(step, s.Batch, s.Seq)
	return Batch{tokens, targets, s.Batch, s.Seq}, err
}

// Gradients computes those of a batch alone, which the parameters have then, and returns its
// loss.
func (b Batch) Gradients(ctx context.Context, m *nn.Llama) (loss float64, err error) {
	m.ZeroGrad()
	l, err := m.Loss(ctx, b.Tokens, b.Targets, b.Sequences, b.Seq)
	if err != nil {
		return 0, err
	}
	return float64(l), m.Backward(ctx)
}

// Step trains a run on the batch of a step.
func (s Setup) Step(ctx context.Context, run *trial.Run, step int, rate float64) (trial.Figures, error) {
	b, err := s.At(step)
	if err != nil {
		return trial.Figures{}, err
	}
	return run.Step(ctx, b.Tokens, b.Targets, b.Sequences, b.Seq, rate)
}

// HeldOut returns the mean loss of a model on the held-out text.
func (s Setup) HeldOut(ctx context.Context, m *nn.Llama) (float64, error) {
	run := trial.Run{Model: m}
	return run.HeldOut(ctx, s.Corpus, s.Judged, s.Batch, s.Seq)
}

// Twin returns a model with the weights of another, in the arithmetic of c.
func Twin(of *nn.Llama, c nn.Config) (*nn.Llama, error) {
	m, err := nn.NewZeroLlama(c)
	if err == nil {
		CopyWeights(m, of)
	}
	return m, err
}

// CopyWeights makes the parameters of to those of from, which has the same shape.
func CopyWeights(to, from *nn.Llama) {
	for i, p := range from.Params() {
		copy(to.Params()[i].Value, p.Value)
	}
}

// Arithmetic is a way to multiply in linear layers.
type Arithmetic struct {
	Name string
	Use  func(*nn.Config)
}

// FP32 multiplies as the model is.
func FP32() Arithmetic { return Arithmetic{"FP32", func(*nn.Config) {}} }

// BF16 rounds operands and results.
func BF16() Arithmetic {
	return Arithmetic{"BF16", func(c *nn.Config) {
		r := nn.DefaultRounding(nn.NarrowBF16)
		c.Rounding = &r
	}}
}

// FP8 multiplies under the default recipes.
func FP8() Arithmetic {
	return Arithmetic{"FP8", func(c *nn.Config) {
		recipes := nn.DefaultFP8()
		c.FP8 = &recipes
	}}
}

// SmallContext is the length of the sequences that SmallLlama is trained on.
const SmallContext = 128

// SmallLlama is the byte-level model of the experiments: half a million values in
// two layers, wide enough for blocks of 128 to be several in a tensor. Its linear
// layers multiply under recipes, or in FP32 if they are nil.
func SmallLlama(o lab.Options, recipes *nn.FP8) nn.Config {
	c := Llama(128, 2, SmallContext)
	c.Workers, c.FP8 = o.Workers, recipes
	return c
}

// Corpus returns the text of o, all of it to train on.
func Corpus(o lab.Options) (*train.Corpus, error) {
	if len(o.Text.Data) < 2*SmallContext {
		return nil, fmt.Errorf("%s has %d bytes, which is too short to train on %d at a time: name a longer one with --text",
			o.Text.Source, o.Text.Bytes, SmallContext)
	}
	return train.NewCorpus(o.Text.Data, 0, o.Seed)
}

// Shards cuts the batch of a step into those of ranks, [batch, seq] each.
func Shards(c *train.Corpus, step, ranks, batch, seq int) (all []train.Shard, err error) {
	tokens, targets, err := c.Batch(step, ranks*batch, seq)
	if err != nil {
		return nil, err
	}
	for n := batch * seq; len(tokens) > 0; tokens, targets = tokens[n:], targets[n:] {
		all = append(all, train.Shard{Tokens: tokens[:n], Targets: targets[:n]})
	}
	return all, nil
}

// Schedule is the learning rate of the experiments over a number of steps.
func Schedule(steps int) optim.Schedule { return Setup{Steps: steps, Rate: 1e-3}.Schedule() }

// Seeds does work of n seeds side by side, from that of o on, and returns what came of each.
// What do is given has the seed and the workers that are its own.
func Seeds[T any](ctx context.Context, o lab.Options, n int, do func(ctx context.Context, o lab.Options) (T, error)) ([]T, error) {
	all := make([]T, n)
	return all, SideBySide(ctx, o, n, func(ctx context.Context, i, workers int) (err error) {
		own := o
		own.Seed, own.Workers = o.Seed+uint64(i), workers
		all[i], err = do(ctx, own)
		return err
	})
}

// Sample is what an experiment does with one seed.
type Sample interface {
	Open() error // what is trained, of which its work is
	Work() int64
	Measure(ctx context.Context, p *lab.Steps, workers int) error
}

// Measure measures samples side by side, the first of which has the seed of o and each other
// the next.
func Measure[S Sample](ctx context.Context, o lab.Options, p *lab.Steps, samples []S) error {
	var work int64
	for _, s := range samples {
		if err := s.Open(); err != nil {
			return err
		}
		work += s.Work()
	}
	p.Expect(work)
	return SideBySide(ctx, o, len(samples), func(ctx context.Context, i, workers int) error {
		if err := samples[i].Measure(ctx, p, workers); err != nil {
			return fmt.Errorf("seed %d: %w", o.Seed+uint64(i), err)
		}
		return nil
	})
}

// SideBySide calls do for each index below n, as many at once as there are
// processors, which the calls share: many runs of one goroutine are faster than one
// run of many. The first error, or the end of ctx, ends the context of all others.
func SideBySide(ctx context.Context, o lab.Options, n int, do func(ctx context.Context, index, workers int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	processors := o.Workers
	if processors == 0 {
		processors = runtime.GOMAXPROCS(0)
	}
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	var wait sync.WaitGroup
	side := min(processors, n)
	for range side {
		wait.Go(func() {
			for i := range next {
				if err := do(ctx, i, processors/side); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}
