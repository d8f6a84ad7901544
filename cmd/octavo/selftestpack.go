package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/cmd/internal/selftest/pack"
	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/textout"
)

func (f *selftestFlags) runPack(cmd *cobra.Command) error {
	ctx, stop := untilSignal(cmd)
	defer stop()
	bar := newDisplay(cmd)
	if f.burst {
		bar.Unit("operators")
	}
	v, err := pack.Run(ctx, pack.Options{Seed: f.Seed, For: f.endurance, Progress: bar})
	bar.Finish()
	if err != nil {
		return err
	}
	return reportPack(ctx, cmd, v, f.asJSON)
}

// reportPack writes a verdict, and returns an error unless it is that all is right.
func reportPack(ctx context.Context, cmd *cobra.Command, v *pack.Result, asJSON bool) error {
	if err := printResult(cmd, asJSON, v, v.WriteText); err != nil {
		return err
	}
	switch {
	case v.Failure != nil:
		return fmt.Errorf("%v: do not trust this machine", v.Failure)
	case v.Outcome == pack.Incomplete && ctx.Err() != nil:
		return stopped(ctx, "what was run until then is right")
	}
	return nil
}

// runCheck reads a verdict.
func (f *selftestFlags) runCheck(cmd *cobra.Command) error {
	file, _, err := inputfile.Open(f.check)
	if err != nil {
		return err
	}
	defer file.Close()
	v, err := pack.Read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", textout.Name(f.check), err)
	}
	if err := reportPack(cmd.Context(), cmd, v, f.asJSON); err != nil {
		return fmt.Errorf("%s: %w", textout.Name(f.check), err)
	}
	if !f.asJSON {
		fmt.Fprintln(cmd.OutOrStdout(), "Compared here: checksums of the first repetition. The rest is what the file says.")
	}
	if v.Outcome != pack.Pass {
		return fmt.Errorf("%s: the verdict is %q: not all operators were run", textout.Name(f.check), v.Outcome)
	}
	return nil
}

// runExport writes the pack for PyTorch.
func (f *selftestFlags) runExport(cmd *cobra.Command) error {
	return madeFiles{
		dir: f.export, kind: "selftest", with: fmt.Sprintf(" --export %s --seed %d", shellQuote(f.export), f.Seed),
		Options: outdir.Options{Files: pack.FileNames(), Flag: "--export"},
		make: func(ctx context.Context, d *display.Display) ([]outdir.File, error) {
			d.Unit("operators")
			return pack.Files(ctx, f.Seed, d)
		},
	}.write(cmd)
}
