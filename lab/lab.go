// Package lab is what the experiments on training in FP8 have in common: what an
// experiment is, what it may be asked, and how far it is. The experiments themselves are
// in the folder experiments; report, training and statistics are what they are made of.
package lab

import (
	"context"
	"fmt"
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
