package main

import (
	"context"
	"errors"
	"io"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/diff"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
)

func newDiffCommand() *cobra.Command {
	var job diff.Job
	var asJSON bool
	top := 20
	cmd := &cobra.Command{
		Use:     "diff A.safetensors|DIR B.safetensors|DIR",
		Short:   "Compare two checkpoints in whatever layouts, by value",
		Long:    helpOf("diff"),
		Example: examplesOf("diff"),
		Args:    takes(2, 2, "two checkpoints"),
		RunE: func(cmd *cobra.Command, args []string) error {
			job.A, job.B = args[0], args[1]
			r, err := work(cmd, "there is no result", func(ctx context.Context, d *display.Display) (*diff.Report, error) {
				d.Unit(display.Bytes)
				job.Options.Progress = d
				return job.Run(ctx)
			})
			if err != nil {
				return err
			}
			err = printResult(cmd, asJSON, r, func(w io.Writer) error { return r.WriteText(w, top) })
			if err != nil || r.Same {
				return err
			}
			return errors.New(r.Failure())
		},
	}
	onlyFlag(cmd, &job.Only, "compare only the tensors whose name matches")
	cmd.Flags().Var(&parsed[*regexp.Regexp]{&job.Except, "", "REGEXP", regexp.Compile}, "except", "leave out the tensors whose name matches")
	cmd.Flags().BoolVar(&job.Tolerance.Rounded, "rounded", false, "allow what is the same once rounded to the narrower type")
	numberFlag(cmd, &job.Tolerance.SQNR, positives, "sqnr", "allow differences with this SQNR in decibels or a higher one")
	numberFlag(cmd, &job.Tolerance.Largest, positives, "largest", "allow differences of finite values up to this")
	cmd.Flags().BoolVar(&job.Lossless, "lossless", false, "prove that B could hold A's codes without loss, or name the block that breaks it")
	wholeFlag(cmd, &top, 0, 1<<30, "top", "show the `N` tensors that differ most; 0 is all")
	workersFlag(cmd, &job.Options.Workers)
	jsonFlag(cmd, &asJSON)
	return cmd
}
