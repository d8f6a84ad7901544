// Package world asks what becomes of numbers that ranks send each other: tokens of experts,
// gradients that are summed, slices of a product, amaxes, and weights.
package world

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/train"
)

//go:embed declaration.toml
var declarationFile []byte

var declared = declaration.OnUse(declarationFile)

// Experiment is octavo lab world.
var Experiment = lab.Experiment{
	Name:  "world",
	Title: "What ranks send each other: what may be in FP8, and in which order is it added?",
	Claim: "Experts' results that come back in FP8 cost accuracy where tokens that go to experts in FP8 cost none " +
		"(DeepEP, pull request 161; DeepSeek-V3, arXiv 2412.19437, section 3.3.3, sends results back in BF16). " +
		"A fixed number of slices of K, summed in a fixed tree, gives any number of tensor-parallel ranks the same bits (arXiv 2511.17826). " +
		"Weights may be gathered in eight bits (ZeRO++, arXiv 2306.10209). " +
		"What gradients lose in sums over 2 to 16,384 ranks, by order and format, and what it costs to share amaxes late or not at all, are our own questions.",
	Declaration: declared,
	Measure:     measure,
}

// scope is how much of it is done.
type scope struct {
	seeds int

	routedSteps     int // of training of the model with experts
	gradientBatches int // that errors of its gradients are taken of
	heldOut         int // that its loss is judged by

	sums     []int // ranks that gradients are summed over
	elements int   // of a gradient

	sliceSteps int // of training of a layer in slices

	teamSteps int // of training under ZeRO
}

// study is all that is measured.
type study struct {
	scope
	samples []*sample // by seed
}

// sample is what is measured with one seed: of first weights, of batches and of random
// operands.
type sample struct {
	scope
	o lab.Options

	setup  training.Setup // of the model with experts
	corpus *train.Corpus  // of the teams

	routes []*route
	sums   []*sum
	slices []*sliced
	teams  []*team

	trained *nn.Llama // by the first team
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
		scope{
			seeds: 12, routedSteps: 120, gradientBatches: 16, heldOut: 6,
			sums: []int{2, 16, 64, 1024, 16384}, elements: 256, sliceSteps: 4, teamSteps: 100,
		},
		scope{
			seeds: 2, routedSteps: 40, gradientBatches: 2, heldOut: 2,
			sums: []int{2, 16, 64, 1024, 16384}, elements: 64, sliceSteps: 2, teamSteps: 30,
		},
		scope{
			seeds: 1, routedSteps: 1, gradientBatches: 1, heldOut: 1,
			sums: []int{2, 64}, elements: 32, sliceSteps: 1, teamSteps: 2,
		})}
	for i := range s.seeds {
		of := o
		of.Seed += uint64(i)
		s.samples = append(s.samples, &sample{scope: s.scope, o: of})
	}
	return s
}

// Open finds the text for what is trained.
func (s *sample) Open() (err error) {
	if s.setup, err = routedSetup(s.o, s.scope); err != nil {
		return err
	}
	s.corpus, err = training.Corpus(s.o)
	return err
}

// Work is that of all parts, in about milliseconds of one processor.
func (s *sample) Work() int64 {
	return s.routesWork() + s.teamsWork() + s.sumsWork() + s.slicesWork()
}

// Measure does all parts. Sums take gradients of the first team's model.
func (s *sample) Measure(ctx context.Context, p *lab.Steps, workers int) error {
	s.o.Workers = workers
	for _, part := range []func(context.Context, *lab.Steps) error{
		s.measureRoutes, s.measureTeams, s.measureSums, s.measureSlices,
	} {
		if err := part(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// done says that a part of a seed is done.
func (s *sample) done(ctx context.Context, p *lab.Steps, what string, work int64) error {
	return p.Done(ctx, fmt.Sprintf("%s, seed %d", what, s.o.Seed), work)
}

// bySeed returns a figure of each sample.
func (s *study) bySeed(figure func(*sample) float64) []float64 {
	return statistics.Each(s.samples, figure)
}

// wire returns the one of a name that [collective.ParseWire] knows.
func wire(name string) collective.Wire {
	w, err := collective.ParseWire(name)
	if err != nil {
		panic(err)
	}
	return w
}
