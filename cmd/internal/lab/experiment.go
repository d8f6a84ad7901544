// Package lab reproduces what is claimed of training in FP8, each claim by an
// experiment made of the library's own parts.
package lab

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/text"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Experiment is a claim and how to check it.
type Experiment struct {
	Name  string // as on the command line
	Title string
	Claim string // what is claimed, by whom and where

	run func(context.Context, Options, *Progress) (*Report, error)
}

// Options are common to all experiments. Results depend on them and on nothing
// else, except for times.
type Options struct {
	Seed    uint64
	Workers int  // 0: all processors; results do not depend on it
	Short   bool // smaller and shorter, to see that it works

	Text text.Text // to train on

	// Activations, unless nil, are those of a real model: for each layer a gate and an
	// up branch, "layers.N.gate" and "layers.N.up", [tokens, channels], and any others.
	Activations *safetensors.File
}

// All returns the experiments in the order of the page.
func All() []Experiment {
	return []Experiment{parity, outliers, granularity, accumulation, law, memory, reduction}
}

// Find returns the experiment of a name.
func Find(name string) (Experiment, error) {
	for _, e := range All() {
		if e.Name == name {
			return e, nil
		}
	}
	return Experiment{}, fmt.Errorf("there is no experiment %q", name)
}

// Run does the experiment, or returns an error once ctx has ended.
func (e Experiment) Run(ctx context.Context, o Options, p *Progress) (*Report, error) {
	o.Text.Data = inPieces(o.Text.Data, o.Seed)
	r, err := e.run(ctx, o, p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	r.Experiment = e
	return r, nil
}

// pick returns the size of a part of an experiment, in short or in full.
func pick[T any](o Options, full, short T) T {
	if o.Short {
		return short
	}
	return full
}
