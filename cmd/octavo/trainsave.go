package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn/hf"
)

// modelKind is the kind of run that --save leaves.
const modelKind = "train --save"

// savedModel is how the model of a run is written.
var savedModel = hf.SaveOptions{Bytes: true}

// modelDirectory claims the directory of --save; it is nil without that.
func modelDirectory(cmd *cobra.Command, flags trainFlags, run *outdir.Run) (*outdir.Run, error) {
	if !cmd.Flags().Changed("save") {
		return nil, nil
	}
	a, errA := os.Stat(run.Dir())
	b, errB := os.Stat(flags.save)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return nil, usagef("the files of the run are in %s: name another directory with --save",
			textout.Name(flags.save))
	}
	overwrite := flags.overwrite
	if m, err := outdir.Read(flags.save); err == nil && flags.resume {
		overwrite = m.Kind == modelKind // which the run may have left when it was stopped
	}
	return givenDirectory(flags.save, outdir.Options{
		Overwrite: overwrite, Flag: "--save", Files: hf.SavedFiles(savedModel),
	})
}

// saveModel writes the model that --save-model says, as far as it is trained, and says where.
func saveModel(
	cmd *cobra.Command, dir *outdir.Run, flags trainFlags, result *comparison.Result,
) error {
	stage, err := dir.Stage()
	if err != nil {
		return err
	}
	model := result.ModelFP32
	if flags.saveFP8 {
		model = result.ModelFP8
	}
	o := savedModel
	bar := newDisplay(cmd)
	bar.Unit("values")
	o.Progress = bar
	err = hf.Save(context.WithoutCancel(cmd.Context()), model, stage, o)
	bar.Finish()
	if err != nil {
		return unsaved(inPlace(err, stage, dir.Dir()), flags)
	}
	for _, name := range hf.SavedFiles(o) {
		if err := dir.Adopt(name); err != nil {
			return err
		}
	}
	err = dir.Commit(outdir.Manifest{
		Kind: modelKind, Machine: trainMachine(), Command: saveCommandLine(flags, result.Options),
	})
	if err != nil || flags.asJSON {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "The model: %s\n", textout.Name(dir.Dir()))
	return err
}

// unsaved says what to do where a model cannot be written.
func unsaved(err error, flags trainFlags) error {
	if flags.checkpointEvery > 0 {
		return fmt.Errorf("%w: make room or name another directory with --save, and add --resume", err)
	}
	return fmt.Errorf("%w: make room, or name another directory with --save, and train again", err)
}

// saveCommandLine is what repeats a run and saves its model.
func saveCommandLine(flags trainFlags, o comparison.Options) string {
	line := trainCommandLine(flags, o) + " --save " + shellQuote(flags.save)
	if flags.saveFP8 {
		line += " --save-model fp8"
	}
	return line
}
