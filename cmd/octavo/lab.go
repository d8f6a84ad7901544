package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/experiments"
)

// labFlags are the flags of lab that are not options of an experiment.
type labFlags struct {
	text, activations, out string
	overwrite, asJSON      bool
	full, short            bool
}

// length returns that of the flags.
func (f labFlags) length() (lab.Length, error) {
	switch {
	case f.full && f.short:
		return 0, usagef("--full and --short exclude each other: a run has one length")
	case f.full:
		return lab.Full, nil
	case f.short:
		return lab.Short, nil
	}
	return lab.Look, nil
}

// labOut is the directory of a run that names none, with a number behind if it is in use.
const labOut = "octavo-lab"

func newLabCommand() *cobra.Command {
	var flags labFlags
	o := lab.Options{Seed: 1}
	cmd := &cobra.Command{
		Use:     "lab NAME",
		Short:   "Test what has been claimed of FP8 training",
		Long:    helpOf("lab", "{experiments}", labNames()),
		Example: examplesOf("lab"),
		Args:    oneExperiment,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Length, err = flags.length(); err != nil {
				return err
			}
			return runLab(cmd, args[0], flags, o)
		},
	}
	f := cmd.Flags()
	textFlag(cmd, &flags.text)
	f.StringVar(&flags.activations, "activations", "", "safetensors `FILE` with activations of a real model")
	outDirFlag(cmd, &flags.out, "the page and other files", "default: the first of octavo-lab, octavo-lab-2, ... that is absent or empty")
	overwriteFlag(cmd, &flags.overwrite)
	f.BoolVar(&flags.full, "full", false, "the whole experiments, as they were declared: verdicts")
	f.BoolVar(&flags.short, "short", false, "far smaller experiments, to see that they work")
	seedFlag(cmd, &o.Seed, "of first weights, batches and random operands")
	workersFlag(cmd, &o.Workers)
	jsonFlag(cmd, &flags.asJSON)
	return cmd
}

// labNames lists the experiments for --help.
func labNames() string {
	var lines []string
	for _, e := range experiments.All() {
		lines = append(lines, fmt.Sprintf("  %-13s %s", e.Name, strings.TrimSpace(textout.Wrap(e.Title, 80, strings.Repeat(" ", 16)))))
	}
	return strings.Join(lines, "\n")
}

const allExperiments = "all"

func oneExperiment(_ *cobra.Command, args []string) error {
	var all []string
	for _, e := range experiments.All() {
		all = append(all, e.Name)
	}
	want := fmt.Sprintf("want %s or %s", strings.Join(all, ", "), allExperiments)
	if len(args) != 1 {
		return fmt.Errorf("there are %d names: %s", len(args), want)
	}
	if _, err := experiments.Find(args[0]); err != nil && args[0] != allExperiments {
		return fmt.Errorf("%w: %s%s", err, want, vocabulary.Hint(args[0], append(all, allExperiments)))
	}
	return nil
}
