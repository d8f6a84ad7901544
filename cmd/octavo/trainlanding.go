package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/cmd/internal/landing"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/telemetry"
)

// landingKind is the kind of run that --landing leaves.
const landingKind = "train --landing"

// landingDirectory claims the directory of --landing; it is nil without that.
func landingDirectory(flags trainFlags) (*outdir.Run, error) {
	if flags.landing == "" {
		return nil, nil
	}
	return givenDirectory(flags.landing, outdir.Options{
		Overwrite: flags.overwrite, Flag: "--landing", Files: landing.Files(),
	})
}

// writeLanding writes what is left of a run that has landed, and says where.
func writeLanding(cmd *cobra.Command, dir *outdir.Run, flags trainFlags, r *comparison.Result) error {
	l := r.Landing
	if dir == nil || l == nil {
		return nil
	}
	m := landing.Manifest{
		Version: landing.Version, Machine: trainMachine(), Text: r.Text.Source, TextSHA: r.Text.SHA256,
		Command: trainCommandLine(flags, r.Options) + " --landing " + shellQuote(flags.landing),
		Step:    l.Step, Cause: l.Cause, Lines: r.Timeline(),
	}
	m.SetFirst(l.Recorder.First)
	arrays, err := m.SetOperator(l.Recorder.Operator)
	if err != nil {
		return err
	}
	if err := dir.AddFiles(outdir.File{Name: landing.OperatorFile, Data: arrays}); err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer) error{
		landing.ManifestFile:  func(w io.Writer) error { return jsonout.Print(w, m) },
		landing.PageFile:      func(w io.Writer) error { return m.WritePage(w, r.LandingCharts(), l.Events) },
		landing.TelemetryFile: func(w io.Writer) error { return writeEvents(w, l.Events) },
	} {
		if err := dir.Add(name, write); err != nil {
			return err
		}
	}
	err = dir.Commit(outdir.Manifest{Kind: landingKind, Machine: m.Machine, Command: m.Command})
	if err != nil || flags.asJSON {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "What happened first: %s\n", textout.Name(dir.Dir()))
	return err
}

// writeEvents writes a line for each.
func writeEvents(w io.Writer, events []telemetry.Event) error {
	sink := telemetry.JSONLines(w)
	for _, e := range events {
		if err := sink.Event(e); err != nil {
			return err
		}
	}
	return nil
}
