package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/landing"
)

func newReplayCommand() *cobra.Command {
	var workers int
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "replay DIR",
		Short:   "Compute the first product that went wrong in a run again",
		Long:    helpOf("replay"),
		Example: examplesOf("replay"),
		Args:    one("directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runReplay(cmd, args[0], workers, asJSON)
		},
	}
	workersFlag(cmd, &workers)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func runReplay(cmd *cobra.Command, dir string, workers int, asJSON bool) error {
	bundle, err := landing.Read(dir)
	if err != nil {
		return fmt.Errorf("%w: name a directory that octavo train --landing wrote", err)
	}
	v, err := work(cmd, "there is no verdict", func(ctx context.Context, _ *display.Display) (*landing.Result, error) {
		return bundle.Replay(ctx, workers)
	})
	if err != nil {
		return err
	}
	err = printResult(cmd, asJSON, v, v.WriteText)
	if failure := v.Failure(); err == nil && failure != "" {
		return errors.New(failure)
	}
	return err
}
