// Package faults asks what it costs to go on without the share of a rank, and whether what
// goes wrong on a rank is found in the step where it begins.
package faults

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/octavo-fp8/octavo/internal/certify"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
)

//go:embed declaration.toml
var declarationFile []byte

var declared = declaration.OnUse(declarationFile)

// Experiment is octavo lab faults.
var Experiment = lab.Experiment{
	Name:  "faults",
	Title: "What does it cost to go on without a rank, and is what goes wrong found?",
	Claim: "The share of a rank that hangs, or whose gradients cannot be trusted, can be left out of a " +
		"step if the mean is that of the other ranks. What that costs in loss, what a mean that is " +
		"divided by all ranks does, and whether injected faults are found in the step where they begin, " +
		"are our own questions.",
	Declaration: declared,
	Measure:     measure,
}

// scope is how much of it is done.
type scope struct {
	seeds   int
	steps   int // of training
	every   int // steps from one judgement to the next, in the last third
	heldOut int // batches that a judgement is of

	faultSteps int // of the runs that faults are done to
}

// study is all that is measured.
type study struct {
	scope
	samples []*sample // by seed
}

// sample is what is measured with one seed: of first weights, batches, and which ranks are
// left out.
type sample struct {
	scope
	o     lab.Options
	setup training.Setup

	teams []*team // as teamKinds
	found *certify.FaultReport
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
		scope{seeds: 12, steps: 150, every: 10, heldOut: 8, faultSteps: 6},
		scope{seeds: 2, steps: 60, every: 10, heldOut: 4, faultSteps: 4},
		scope{seeds: 1, steps: 3, every: 1, heldOut: 1, faultSteps: 4})}
	for i := range s.seeds {
		of := o
		of.Seed += uint64(i)
		s.samples = append(s.samples, &sample{scope: s.scope, o: of})
	}
	return s
}

// Open finds the text.
func (s *sample) Open() (err error) {
	s.setup, err = training.NewSetup(s.o, s.o.Seed, training.Setup{
		Steps: s.steps, Batch: teamRanks, Seq: teamContext, Rate: 1e-3, Judged: s.heldOut,
	})
	return err
}

// Measure trains all teams, and has all faults found.
func (s *sample) Measure(ctx context.Context, p *lab.Steps, _ int) (err error) {
	for i, kind := range teamKinds {
		t, err := s.train(ctx, kind, p)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		if i == 0 {
			t.along = 1
		} else {
			t.along = along(t.first, s.teams[0].first)
		}
		s.teams = append(s.teams, t)
	}
	if s.found, err = certify.Faults(ctx, s.faultSteps, s.o.Seed, nil); err != nil {
		return err
	}
	return p.Done(ctx, fmt.Sprintf("faults, seed %d", s.o.Seed), faultWork)
}
