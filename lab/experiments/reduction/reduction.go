// Package reduction asks where gradients that workers add in FP8 should be divided.
package reduction

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/train"
)

//go:embed declaration.toml
var declarationFile []byte

var declared = declaration.OnUse(declarationFile)

// Experiment is octavo lab reduction.
var Experiment = lab.Experiment{
	Name:  "reduction",
	Title: "Gradients summed over workers in FP8: where should one divide?",
	Claim: "Divided by the number of workers before they are added, FP8 gradients underflow; divided after, they overflow; " +
		"an automatic factor avoids both (FP8-LM, Peng et al., arXiv 2310.18313, section 2.2), with one scale that all workers share. " +
		"MS-AMP's released code divides by its root before and again after.",
	Declaration: declared,
	Measure:     measure,
}

// scope is how much of it is done.
type scope struct {
	seeds int

	worlds  []int // numbers of workers
	steps   int   // of training on all sequences
	adapted int   // the last of them, in which automatic factors have adapted

	team      int // workers that train
	teamSteps int
}

// study is all that is measured.
type study struct {
	scope
	samples []*sample // by seed
}

// sample is what is measured with one seed: of first weights and of batches.
type sample struct {
	scope
	o      lab.Options
	corpus *train.Corpus
	run    *trial.Run

	worlds []*world
	teams  []*team // as teamKinds
}

func measure(ctx context.Context, o lab.Options, p *lab.Steps) (*report.Report, error) {
	s := newStudy(o)
	if err := training.Measure(ctx, o, p, s.samples); err != nil {
		return nil, err
	}
	return s.report(), nil
}

func newStudy(o lab.Options) *study {
	s := &study{scope: lab.Pick(o,
		scope{seeds: 10, worlds: []int{2, 4, 8, 16, 32, 64}, steps: 16, adapted: 6, team: 8, teamSteps: 150},
		scope{seeds: 2, worlds: []int{2, 8, 64}, steps: 12, adapted: 4, team: 8, teamSteps: 40},
		scope{seeds: 1, worlds: []int{2, 8}, steps: 3, adapted: 1, team: 2, teamSteps: 4})}
	for i := range s.seeds {
		of := o
		of.Seed += uint64(i)
		s.samples = append(s.samples, &sample{scope: s.scope, o: of})
	}
	return s
}

// Open finds the text.
func (s *sample) Open() (err error) {
	s.corpus, err = training.Corpus(s.o)
	return err
}

// Measure does all parts, on a corpus.
func (s *sample) Measure(ctx context.Context, p *lab.Steps, workers int) (err error) {
	s.o.Workers = workers
	if s.run, err = s.newRun("shards"); err != nil {
		return err
	}
	if err := s.worldsAdapt(ctx, p); err != nil {
		return err
	}
	return s.teamsTrain(ctx, p)
}

// What things take, in thirds of what the gradients of a sequence do: to reduce one of
// the gradients takes about one.
const (
	sequenceWork = 3
	reduceWork   = 1
)

// Work is that of all parts.
func (s *sample) Work() int64 {
	steps := int64(len(teamKinds) * s.teamSteps * s.team * sequenceWork)
	for step := range s.steps {
		steps += s.worldsWork(step)
	}
	return steps
}

// worldsWork is that of a step of all worlds.
func (s *sample) worldsWork(step int) int64 {
	reductions := 0
	for _, size := range s.scope.worlds {
		for _, w := range ways() {
			if s.reduces(w, step) {
				reductions += len(kinds) * size
			}
		}
	}
	return int64(slices.Max(s.scope.worlds)*sequenceWork + reductions*reduceWork)
}

// reduces reports whether worlds of a way reduce the gradients of a step: those of
// automatic factors in every step, the others in the last.
func (s *sample) reduces(w way, step int) bool {
	return w.division == collective.DivideAuto || step == s.steps-1
}

// newRun returns a model in FP8, always with the same first weights for a seed.
func (s *sample) newRun(name string) (*trial.Run, error) {
	recipes := nn.DefaultFP8()
	return trial.New(name, training.SmallLlama(s.o, &recipes), s.o.Seed)
}

// worldsAdapt trains on as many sequences as the largest world has workers, and lets
// all worlds reduce their gradients.
func (s *sample) worldsAdapt(ctx context.Context, p *lab.Steps) error {
	for _, k := range kinds {
		for _, size := range s.scope.worlds {
			for _, w := range ways() {
				s.worlds = append(s.worlds, newWorld(k, size, w, s.o.Workers))
			}
		}
	}
	all := slices.Max(s.scope.worlds)
	params := s.run.Model.Params()
	g := newStepGradients(params, all)
	for step := range s.steps {
		if err := s.gradients(ctx, g, step, all); err != nil {
			return err
		}
		for _, w := range s.worlds {
			if !s.reduces(w.way, step) {
				continue
			}
			if err := w.step(ctx, g); err != nil {
				return err
			}
		}
		for i, param := range params {
			copy(param.Grad, g.mean[i])
		}
		if _, err := s.run.Optimizer.Step(ctx, params, training.Schedule(s.steps).At(step)); err != nil {
			return err
		}
		if err := p.Done(ctx, fmt.Sprintf("worlds, seed %d", s.o.Seed), s.worldsWork(step)); err != nil {
			return err
		}
	}
	return nil
}

// gradients fills g with those of each sequence of a step on its own.
func (s *sample) gradients(ctx context.Context, g *stepGradients, step, n int) error {
	shards, err := training.Shards(s.corpus, step, n, 1, training.SmallContext)
	if err != nil {
		return err
	}
	for i, shard := range shards {
		b := training.Batch{Tokens: shard.Tokens, Targets: shard.Targets, Sequences: 1, Seq: training.SmallContext}
		if _, err := b.Gradients(ctx, s.run.Model); err != nil {
			return err
		}
		for k, param := range s.run.Model.Params() {
			copy(g.shards[i][k], param.Grad)
		}
	}
	return g.average(ctx)
}

// world returns one of those measured.
func (s *sample) world(k kind, size int, w way) *world {
	for _, a := range s.worlds {
		if a.kind.name == k.name && a.size == size && a.way == w {
			return a
		}
	}
	return nil
}
