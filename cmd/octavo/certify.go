package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/certify"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
)

const certifyLong = `Certify trains a small Llama for a few steps in many ways, and compares every
tensor of every step to the bit: activations, gradients of each shard, their
mean, scales and amaxes, and weights on each rank. Where two ways differ it
names the first step, tensor, rank and element, and both values. --vary chooses
what is varied:

  workers        goroutines
  level          instructions, down to plain Go
  replicas       replicas that take shards of the batch from a queue
  ranks          data-parallel ranks; gradients are summed over 8 shards, in
                 order or in a tree that does not depend on the number of ranks
  zero           the stages of ZeRO on 8 ranks
  tensor         tensor-parallel ranks, MLPs in 8 slices on any number of them
  layouts        data, tensor, pipeline and expert parallelism with ZeRO on 2 to
                 8 ranks, of a dense model and of one with experts and latent
                 attention: activations, losses, norms and weights
  batch          sequences that go forward together
  micro-batches  sequences whose gradients are computed together
  order          the order in which gradients are added
  slices         tensor-parallel ranks with one slice each, as is usual

Octavo promises that the first seven change no bit, nor does batch except with
--recipe tensor, whose scales depend on the other sequences. For the last three
the first difference is shown and is no failure. A part is the number of a
sequence or shard; a whole has part 0. If copies of a tensor differ between
ranks, the copy that most ranks have counts as right.

--layout proves one layout, such as data=2,tensor=2,zero=3, against one rank
that cuts batch and layers in the same way. Its numbers are data, tensor,
pipeline, chunks (interleaved stages), expert (of the data-parallel ranks), zero
(stage), and shards, micro and slices of the computation. --send sets the form
of what is sent, such as weight=e4m3-block; with --twin-sends the one rank
rounds in the same way.

--faults injects faults into one of 8 data-parallel ranks, in runs with delayed
scales, and says what finds them: comparison with a run without the fault
(twin), comparison between ranks (ranks), and sums over gradients before and
after they were sent, which also show a wrong divisor (sums).

The exit status is 1 if bits differ that must be the same, or with --faults if
the twin misses a fault in its step or finds one where there is none. JSON has
the keys equal, recipe, steps, seed, level and certificates (varied, to,
reference, promised, steps, tensors, equal, first), or found, steps, seed, clean
and faults (fault, twin, ranks, sums).`

const certifyExample = `  octavo certify
  octavo certify --recipe tensor --vary batch,micro-batches
  octavo certify --layout data=2,tensor=2,pipeline=2,zero=3 --model experts
  octavo certify --layout data=4,zero=3 --send weight=e4m3-block --twin-sends
  octavo certify --faults --steps 6 --seed 3`

// certifyFlags are the flags of certify.
type certifyFlags struct {
	certify.Options
	faults, asJSON bool

	layout, send string
	experts      bool // of --layout's model
	twinSends    bool
}

func newCertifyCommand() *cobra.Command {
	f := certifyFlags{Options: certify.Options{Steps: 4, Seed: 1}}
	cmd := &cobra.Command{
		Use:     "certify",
		Short:   "Prove that batch, ranks and engine change no bit of training",
		Long:    certifyLong,
		Example: certifyExample,
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	nameFlag(cmd, &f.Recipe, "recipe", "what linear layers multiply", named(certify.Recipes())...)
	wholeFlag(cmd, &f.Steps, 1, 10_000, "steps", "steps of training")
	seedFlag(cmd, &f.Seed, "seed of weights, batches and faults")
	vary := &parsed[[]string]{&f.Vary, "", "LIST", parseVaried}
	cmd.Flags().Var(oneOf{vary, certify.Varied()}, "vary",
		"what is varied, with commas between (default all)")
	cmd.Flags().StringVar(&f.layout, "layout", "", "prove only this `LAYOUT`")
	nameFlag(cmd, &f.experts, "model", "model of --layout", choice[bool]{"dense", false}, choice[bool]{"experts", true})
	cmd.Flags().StringVar(&f.send, "send", "", "`FORMS` in which --layout sends values")
	cmd.Flags().BoolVar(&f.twinSends, "twin-sends", false, "the one rank rounds as --send does, too")
	cmd.Flags().BoolVar(&f.faults, "faults", false, "inject faults into a rank and say what finds them")
	jsonFlag(cmd, &f.asJSON)
	return cmd
}

// cut returns what --layout asks for; nil without it.
func (f *certifyFlags) cut(cmd *cobra.Command) (*certify.Cut, error) {
	if f.layout == "" {
		return nil, refuse(cmd, " is of a layout: give --layout, too", "model", "send", "twin-sends")
	}
	if cmd.Flags().Changed("vary") {
		return nil, usagef("--layout proves one layout alone: leave --vary out")
	}
	l, err := certify.ParseLayout(f.layout)
	if err != nil {
		return nil, usagef("--layout: %w", err)
	}
	if f.send != "" {
		if l.Exchanges, err = certify.ParseSends(f.send); err != nil {
			return nil, usagef("--send: %w", err)
		}
		if err := l.Check(); err != nil {
			return nil, usagef("--send: %w", err)
		}
	}
	return &certify.Cut{Layout: l, Experts: f.experts, TwinSends: f.twinSends}, nil
}

// parseVaried reads a list of what is varied.
func parseVaried(text string) ([]string, error) {
	list := strings.Split(text, ",")
	for _, name := range list {
		if !slices.Contains(certify.Varied(), name) {
			return nil, fmt.Errorf("want some of %s, with commas between",
				strings.Join(certify.Varied(), ", "))
		}
	}
	return list, nil
}

// certified is a report that is text and JSON.
type certified interface{ WriteText(w io.Writer) error }

func (f *certifyFlags) run(cmd *cobra.Command) error {
	if f.faults {
		if err := refuse(cmd, ": it does not go with --faults", "recipe", "vary", "layout"); err != nil {
			return err
		}
		if f.Steps < 4 {
			return usagef("--steps %d: want at least 4 with --faults", f.Steps)
		}
	}
	var err error
	if f.Cut, err = f.cut(cmd); err != nil {
		return err
	}
	var failure string
	report, err := work(cmd, "there is no certificate", func(ctx context.Context, d *display.Display) (r certified, err error) {
		f.Progress = d
		r, failure, err = f.certify(ctx)
		return r, err
	})
	if err != nil {
		return err
	}
	if err := printResult(cmd, f.asJSON, report, report.WriteText); err != nil {
		return err
	}
	if failure != "" {
		return errors.New(failure)
	}
	return nil
}

// certify does the work, and says in what the result failed if it did.
func (f *certifyFlags) certify(ctx context.Context) (report certified, failure string, err error) {
	if f.faults {
		r, err := certify.Faults(ctx, f.Steps, f.Seed, f.Progress)
		if err == nil && !r.Found {
			failure = "a fault was not found in its step, or one was found where there is none"
		}
		return r, failure, err
	}
	r, err := certify.Run(ctx, f.Options)
	if err == nil && !r.Equal {
		failure = fmt.Sprintf("%d certificates have other bits than promised", r.Failed())
		if r.Failed() == 1 {
			failure = "1 certificate has other bits than promised"
		}
	}
	return r, failure, err
}
