package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/runs"
	"github.com/octavo-fp8/octavo/internal/textout"
)

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
		Long:    helpOf("report"),
		Example: examplesOf("report"),
		Args:    someDirectories,
		RunE:    func(cmd *cobra.Command, dirs []string) error { return runReport(cmd, dirs, flags) },
	}
	cmd.Flags().StringVarP(&flags.out, "out", "o", "", "`FILE` to write a page to, replaced if it exists")
	choiceFlag(cmd, &flags.sort, "sort", "what runs are sorted by, the least first: as they were named, or by name, FP8's final loss, the gap, that of held-out losses, or time", named(runs.Orders())...)
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
	set, err := work(cmd, "nothing was written", func(ctx context.Context, d *display.Display) (*runs.Set, error) {
		d.Unit("runs")
		return runs.Read(ctx, dirs, d)
	})
	if err != nil {
		return err
	}
	set.Sort(flags.sort)
	if err := writeReportPage(set, dirs, flags); err != nil {
		return err
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
func writeReportPage(set *runs.Set, dirs []string, flags reportFlags) error {
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
	return writePage(flags.out, "-o", func(w io.Writer, machine string) error {
		return set.WritePage(w, filepath.Dir(flags.out), command, machine)
	})
}
