package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/experiments"
)

const labLong = `Lab tests what has been claimed of training in FP8. Each NAME is one experiment,
made of octavo's own parts, and "all" does all of them, one after another:

%s

What came out is printed: the goals, which were declared before the run that
judges them, and the findings, which follow from the figures of this run. A goal
is met or missed where the interval of what was found is wholly inside or
outside of what was wanted, and undecided where it is on both sides. Controls
are known to be worse: an experiment that is worth anything has them caught.

By default a run is a look: "all" takes at most 20 minutes on two processors,
shows figures, and judges only goals of which it has as much as was declared.
--full does what was declared, for verdicts: an hour at most for each
experiment. --short takes seconds, shows that the experiments work, and judges
only what needs no sample.

A directory of its own, or the one given by --out, receives for each experiment
NAME.html, one page with plots, tables and what is needed to repeat it,
NAME.json, which --json prints, and for each table NAME-TABLE.csv; "all" also
writes index.html. They appear together at the end, with octavo-run.json, which
lists them. A run that is there already is replaced only with --overwrite.

Models are small and byte-level, Llamas and one mixture of experts, trained on
the source of the Go standard library, which the go command finds, or on --text.
--activations names a safetensors file with the activations of a real model,
[tokens, channels]: layers.N.gate and layers.N.up, and any others; without it
the experiments use those of the models they train. The text is cut into pieces
of 4096 bytes, which the seed puts in another order, so that the held-out end of
the text is like the rest.

Losses, codes and products do not depend on the machine or on --workers. Ctrl-C,
SIGTERM or SIGHUP ends the run: experiments that were finished are written, the
one at work is not. The exit status is 0 whether goals were met or not; --json
prints them for a program.`

const labExample = `  octavo lab parity
  octavo lab accumulation --full --seed 7 -o lab-out
  octavo lab all --text shakespeare.txt`

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
		Long:    fmt.Sprintf(labLong, labNames()),
		Example: labExample,
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
	outDirFlag(cmd, &flags.out, "the files", "default: the first of octavo-lab, octavo-lab-2, ... that is absent or empty")
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
	var names []string
	for _, e := range experiments.All() {
		names = append(names, e.Name)
	}
	want := fmt.Sprintf("want %s or %s", strings.Join(names, ", "), allExperiments)
	if len(args) != 1 {
		return fmt.Errorf("there are %d names: %s", len(args), want)
	}
	if _, err := experiments.Find(args[0]); err != nil && args[0] != allExperiments {
		return fmt.Errorf("%w: %s%s", err, want, similar(args[0], append(names, allExperiments)))
	}
	return nil
}
