package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/internal/certify"
)

// certifyFlags are the flags of certify.
type certifyFlags struct {
	certify.Options
	pagedFlags
	faults bool

	layout, send string
	experts      bool // of --layout's model
	twinSends    bool
}

func newCertifyCommand() *cobra.Command {
	f := certifyFlags{Options: certify.Options{Steps: 4, Seed: 1}}
	cmd := &cobra.Command{
		Use:     "certify",
		Short:   "Prove that batch, ranks and engine change no bit of training",
		Long:    helpOf("certify"),
		Example: examplesOf("certify"),
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	recipeFlag(cmd, &f.Recipe, f.Recipe.String(), vocabulary.Certifying, "what linear layers multiply:\n"+strings.Join(vocabulary.Certifying.Names(), ", "),
		func(name string) (r certify.Recipe, err error) {
			if err = vocabulary.Certifying.Check(name); err == nil {
				err = r.UnmarshalText([]byte(name))
			}
			return r, err
		})
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
	f.add(cmd, "what was compared")
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
	report, err := work(cmd, "there is no certificate", func(ctx context.Context, d *display.Display) (r verdict, err error) {
		f.Progress = d
		r, failure, err = f.certify(ctx)
		return r, err
	})
	if err != nil {
		return err
	}
	if err := f.show(cmd, report, report.WriteText); err != nil {
		return err
	}
	if failure != "" {
		return errors.New(failure)
	}
	return nil
}

// certify does the work, and says in what the result failed if it did.
func (f *certifyFlags) certify(ctx context.Context) (report verdict, failure string, err error) {
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
