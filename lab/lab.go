// Package lab is what the experiments on training in FP8 have in common: what an
// experiment is, what it may be asked, and how far it is. The experiments themselves are
// in the folder experiments; report, training and statistics are what they are made of.
package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/octavo-fp8/octavo/internal/text"
	"github.com/octavo-fp8/octavo/lab/declaration"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Experiment is a claim and how to check it.
type Experiment struct {
	Name  string // as on the command line
	Title string
	Claim string // what is claimed, by whom and where

	// Declaration returns what the goals are judged by. It is read when it is first asked for.
	Declaration func() *declaration.Declaration

	// Measure does the experiment. It says to steps how far it is, and returns an error
	// soon after ctx has ended.
	Measure func(ctx context.Context, o Options, steps *Steps) (*report.Report, error)
}

// Options are common to all experiments. Results depend on them and on nothing
// else, except for times.
type Options struct {
	Seed    uint64
	Workers int // 0: all processors; results do not depend on it
	Length  Length

	Text text.Text // to train on

	// Activations, unless nil, are those of a real model: for each layer a gate and an
	// up branch, "layers.N.gate" and "layers.N.up", [tokens, channels], and any others.
	Activations *safetensors.File

	Progress progress.Reporter // nil: silent
}

// Run does the experiment, or returns an error once ctx has ended.
func (e Experiment) Run(ctx context.Context, o Options) (*report.Report, error) {
	start := time.Now()
	o.Text.Data = inPieces(o.Text.Data, o.Seed)
	r, err := e.Measure(ctx, o, &Steps{reporter: o.Progress})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	r.Name, r.Title, r.Claim, r.Time = e.Name, e.Title, e.Claim, time.Since(start)
	r.Plan = e.Declaration().Plan()
	r.SetLength(o.Length)
	return r, nil
}

// Length is how much of an experiment a run does. The zero value is a look.
type Length = report.Length

// The lengths of a run.
const (
	Look  = report.Look
	Short = report.Short
	Full  = report.Full
)

// Pick returns the size of a part of an experiment, of which a full run does what was
// declared, a look at most two minutes on two cores, and a short run a second or two.
func Pick[T any](o Options, full, look, short T) T {
	switch o.Length {
	case Full:
		return full
	case Short:
		return short
	}
	return look
}

// pieceBytes is far more than a sequence, so that few windows see a seam.
const pieceBytes = 4096

// inPieces returns a text whose pieces are in another order, so that what is held out
// at its end is like the rest: the last files of a source tree are not.
func inPieces(data []byte, seed uint64) []byte {
	n := (len(data) + pieceBytes - 1) / pieceBytes
	mixed := make([]byte, 0, len(data))
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(n) {
		mixed = append(mixed, data[i*pieceBytes:min((i+1)*pieceBytes, len(data))]...)
	}
	return mixed
}

// Steps counts what of an experiment is done. The zero value tells nobody. Done may be
// called by several goroutines at once.
type Steps struct {
	reporter progress.Reporter

	mu          sync.Mutex
	total, done int64
}

// Expect says how much work there will be, in units of any kind, so that shares of it are
// about shares of the time. It is called once, before the first step.
func (s *Steps) Expect(work int64) {
	s.total = work
	if s.reporter != nil {
		s.reporter.Progress("beginning", 0, work)
	}
}

// Done says that a step is done, of what is named and how much work, and returns an error
// if it was the last one because ctx has ended.
func (s *Steps) Done(ctx context.Context, what string, work int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.done
	s.done += work
	if s.reporter != nil && s.telling(before) {
		s.reporter.Progress(what, s.done, s.total)
	}
	return context.Cause(ctx)
}

// perTotal is how often at most a reporter hears of the steps of an experiment.
const perTotal = 400

// telling reports whether the step just done, before which so much was, is one that the
// reporter hears of.
func (s *Steps) telling(before int64) bool {
	part := float64(s.total) / perTotal
	return s.done == s.total || int64(float64(s.done)/part) != int64(float64(before)/part)
}
