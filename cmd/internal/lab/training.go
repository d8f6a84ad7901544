package lab

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/trial"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/train"
)

// lesson is what is trained on and for how long: the same for all runs that are
// compared.
type lesson struct {
	corpus *train.Corpus
	steps  int
	batch  int // sequences in a step
	seq    int // bytes in a sequence
	rate   float64
	judged int // held-out batches
}

// newLesson returns a lesson on the text of o. Its seed decides which windows of the
// text a step sees.
func newLesson(o Options, seed uint64, l lesson) (lesson, error) {
	var err error
	if l.corpus, err = train.NewCorpus(o.Text.Data, l.judged*l.batch*l.seq+1, seed); err != nil {
		return l, fmt.Errorf("%s has %d bytes, which is too short for %d held-out batches of %d x %d: name a longer one with --text",
			o.Text.Source, o.Text.Bytes, l.judged, l.batch, l.seq)
	}
	return l, nil
}

func (l lesson) schedule() optim.Schedule {
	return optim.Schedule{Peak: l.rate, Final: 0.1, Warmup: max(l.steps/10, 1), Steps: l.steps}
}

// llama returns a byte-level model: four heads, an MLP of 8/3 of the width.
func llama(dim, layers, context int) nn.Config {
	return nn.Config{Vocab: 256, Dim: dim, Layers: layers, Heads: 4, Hidden: (8*dim/3 + 7) / 8 * 8, Context: context}
}

// job is a model in training on a lesson.
type job struct {
	name   string
	config nn.Config // Workers are set by trainAll
	seed   uint64    // of the first weights
	lesson lesson

	moments optim.Moments // of the optimizer
}

// curve is what comes of a job.
type curve struct {
	losses  []float64 // of each step's batch, before it
	heldOut float64   // mean loss on the held-out text, after the last step
	params  int

	activations nn.ActivationBytes // kept for the backward pass
	momentBytes int
}

// last returns the mean loss of the last tenth of the steps.
func (c curve) last() float64 { return mean(c.losses[len(c.losses)-(len(c.losses)+9)/10:]) }

// trainAll does all jobs side by side. Each step of each job is a step of the progress.
// Results do not depend on what runs beside them.
func trainAll(ctx context.Context, o Options, p *Progress, jobs []job) ([]curve, error) {
	curves := make([]curve, len(jobs))
	err := sideBySide(ctx, o, len(jobs), func(ctx context.Context, i, workers int) (err error) {
		jobs[i].config.Workers = workers
		if curves[i], err = jobs[i].do(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", jobs[i].name, err)
		}
		return nil
	})
	return curves, err
}

func totalSteps(jobs []job) (n int) {
	for _, j := range jobs {
		n += j.lesson.steps
	}
	return n
}

func (j job) do(ctx context.Context, p *Progress) (curve, error) {
	run, err := trial.New(j.name, j.config, j.seed)
	if err != nil {
		return curve{}, err
	}
	run.Optimizer.Moments = j.moments
	c := curve{params: run.Params()}
	schedule := j.lesson.schedule()
	for step := range j.lesson.steps {
		f, err := j.lesson.step(run, step, schedule.At(step))
		if err != nil {
			return c, err
		}
		c.losses = append(c.losses, f.Loss)
		if err := p.done(ctx, j.name); err != nil {
			return c, err
		}
	}
	c.activations, c.momentBytes = run.Model.ActivationBytes(), run.Optimizer.MomentBytes()
	c.heldOut, err = run.HeldOut(j.lesson.corpus, j.lesson.judged, j.lesson.batch, j.lesson.seq)
	return c, err
}

// step trains a run on the batch of a step.
func (l lesson) step(run *trial.Run, step int, rate float64) (trial.Figures, error) {
	tokens, targets, err := l.corpus.Batch(step, l.batch, l.seq)
	if err != nil {
		return trial.Figures{}, err
	}
	return run.Step(tokens, targets, l.batch, l.seq, rate)
}
