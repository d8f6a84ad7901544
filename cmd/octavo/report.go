package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/machine"
	"github.com/octavo-fp8/octavo/cmd/internal/runs"
	"github.com/octavo-fp8/octavo/internal/atomicfile"
	"github.com/octavo-fp8/octavo/internal/textout"
)

const reportLong = `Report puts several runs of octavo train and octavo lab side by side. Each DIR
is the directory of a run, or one with such directories in it, which stands for
them all.

For each run of train it prints the steps done, the final losses of FP32 and FP8
(or of what the recipe multiplies in; JSON always says fp8), the gap between
them and between the held-out losses, spikes, skipped steps, the time, the
verdict on the health of the operands, and the options in which runs differ. For
each experiment and run of lab it prints how many of the judged goals were met
and, if several runs did the same experiment, the outcome of each goal.

-o writes a page with the same, the curves of all runs in one chart, and links
to the runs' own pages, which work while the page stays where it is. Runs with
the same FP32 curve share one line for it.

Runs of different lengths, and runs that were stopped, can be compared. It is an
error if a directory holds no run or a broken one; then nothing is written.`

const reportExample = `  octavo report octavo-train octavo-train-2
  octavo report . -o report.html --sort gap
  octavo report octavo-lab octavo-lab-2 --json |
    jq '.lab[].experiments[] | {name, met}'`

// reportFlags are the flags of report.
type reportFlags struct {
	out    string
	asJSON bool
	sort   runs.Order
}

func newReportCommand() *cobra.Command {
	var flags reportFlags
	cmd := &cobra.Command{
		Use:     "report DIR...",
		Short:   "Compare runs of train and lab in one table and on one page",
		Long:    reportLong,
		Example: reportExample,
		Args:    someDirectories,
		RunE:    func(cmd *cobra.Command, dirs []string) error { return runReport(cmd, dirs, flags) },
	}
	cmd.Flags().StringVarP(&flags.out, "out", "o", "", "`FILE` to write a page to, replaced if it exists")
	var orders []choice[runs.Order]
	for _, o := range runs.Orders() {
		orders = append(orders, choice[runs.Order]{string(o), o})
	}
	choiceFlag(cmd, &flags.sort, "sort", "what runs are sorted by, the least first: as they were named, or by name, FP8's final loss, the gap, that of held-out losses, or time", orders...)
	jsonFlag(cmd, &flags.asJSON)
	return cmd
}

// someDirectories is the Args of a command that takes directories.
func someDirectories(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("want directories of runs, there are none")
	}
	return nil
}

func runReport(cmd *cobra.Command, dirs []string, flags reportFlags) error {
	ctx, stop := untilSignal(cmd)
	defer stop()
	display := newDisplay(cmd)
	defer display.Finish()
	display.Unit("runs")
	set, err := runs.Read(ctx, dirs, display)
	display.Finish()
	if ctx.Err() != nil {
		return stopped(ctx, "nothing was written")
	}
	if err != nil {
		return err
	}
	set.Sort(flags.sort)
	if flags.out != "" {
		if err := writeReportPage(ctx, set, dirs, flags); err != nil {
			return err
		}
	}
	if flags.asJSON {
		return set.WriteJSON(cmd.OutOrStdout())
	}
	if err := set.WriteText(cmd.OutOrStdout()); err != nil || flags.out == "" {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "\nCurves and tables: %s\n", textout.Name(flags.out))
	return err
}

// writeReportPage writes the page, but not over a file of a run.
func writeReportPage(ctx context.Context, set *runs.Set, dirs []string, flags reportFlags) error {
	if out, err := os.Stat(flags.out); err == nil && set.Holds(func(path string) bool {
		file, err := os.Stat(path)
		return err == nil && os.SameFile(file, out)
	}) {
		return usagef("%s is a file of one of the runs: name another one with -o", flags.out)
	}
	command := "octavo report"
	for _, dir := range dirs {
		command += " " + shellQuote(dir)
	}
	command += " -o " + shellQuote(flags.out)
	if flags.sort != runs.AsGiven {
		command += " --sort " + string(flags.sort)
	}
	v := machine.Current()
	on := fmt.Sprintf("octavo %s, %s, %s/%s", v.Version, v.Go, v.OS, v.Arch)
	err := atomicfile.Write(flags.out, func(w io.Writer) error {
		return set.WritePage(w, filepath.Dir(flags.out), command, on)
	})
	return unwritten(ctx, flags.out, err)
}
