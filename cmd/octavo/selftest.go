package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/selftest"
)

// selftestFlags are the flags of selftest.
type selftestFlags struct {
	selftest.Options
	asJSON bool

	burst         bool
	endurance     time.Duration
	export, check string
}

func newSelftestCommand() *cobra.Command {
	f := selftestFlags{Options: selftest.Options{Seed: 1, Time: 10 * time.Second}}
	cmd := &cobra.Command{
		Use:     "selftest",
		Short:   "Compare every kernel of this machine with plain Go",
		Long:    helpOf("selftest"),
		Example: examplesOf("selftest"),
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	durationFlag(cmd, &f.Time, "time", "how long to test, such as 10s or 5m")
	seedFlag(cmd, &f.Seed, "seed of the inputs")
	cmd.Flags().BoolVar(&f.burst, "burst", false, "run the operators of a training run, three times")
	durationFlag(cmd, &f.endurance, "for", "run them again and again for so long, such as 8h")
	cmd.Flags().StringVar(&f.export, "export", "", "`DIR` to write operators for PyTorch to, made if need be")
	cmd.Flags().StringVar(&f.check, "check", "", "`FILE` with a verdict to check")
	jsonFlag(cmd, &f.asJSON)
	return cmd
}

func (f *selftestFlags) run(cmd *cobra.Command) error {
	var set []string
	for _, name := range []string{"time", "burst", "for", "export", "check"} {
		if cmd.Flags().Changed(name) {
			set = append(set, "--"+name)
		}
	}
	switch {
	case len(set) > 1:
		return usagef("%s do not go together: leave one out", strings.Join(set, " and "))
	case f.check != "" && cmd.Flags().Changed("seed"):
		return usagef("--seed is in the verdict that --check reads: leave it out")
	case f.export != "" && f.asJSON:
		return usagef("--export prints no result: leave --json out")
	case f.check != "":
		return f.runCheck(cmd)
	case f.export != "":
		return f.runExport(cmd)
	case f.burst || f.endurance > 0:
		return f.runPack(cmd)
	}
	ctx, stop := untilSignal(cmd)
	defer stop()
	bar := newDisplay(cmd)
	f.Progress = bar
	r, err := selftest.Run(ctx, f.Options)
	bar.Finish()
	if err != nil {
		return err
	}
	return reportSelftest(ctx, cmd, r, f.asJSON)
}

// reportSelftest writes the result, and returns an error if there was a fault or
// if the test ended early.
func reportSelftest(ctx context.Context, cmd *cobra.Command, r *selftest.Result, asJSON bool) error {
	if err := printResult(cmd, asJSON, r, r.WriteText); err != nil {
		return err
	}
	switch {
	case r.Failure != nil:
		return fmt.Errorf("%v: do not trust this machine; octavo selftest --seed %d repeats it", r.Failure, r.Failure.Seed)
	case ctx.Err() != nil:
		return stopped(ctx, "what was tested until then has no fault")
	}
	return nil
}

// durationFlag adds a flag that takes a time above 0, by default *value, or none if that is 0.
func durationFlag(cmd *cobra.Command, value *time.Duration, name, usage string) {
	parse := func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return 0, errors.New("want a time such as 10s or 5m")
		}
		return d, nil
	}
	text := ""
	if *value > 0 {
		text = value.String()
	}
	cmd.Flags().Var(&parsed[time.Duration]{value, text, "TIME", parse}, name, usage)
}
