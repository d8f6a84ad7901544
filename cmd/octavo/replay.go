package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/landing"
)

const replayLong = `Replay computes the first FP8 product that went wrong in a run again, from the
bundle that octavo train --landing wrote to DIR. It quantizes the operands again
from their values, with the same recipes, scales and seeds, if the bundle has
more than their codes, and multiplies them. It compares codes, scales and result
with those of the run, bit for bit: they are the same on every machine and at
every level (OCTAVO_LEVEL).

It first says why the run stopped, which element of the product is the first bad
one, and why: an operand had it, it saturated, it became zero, or the sum of
finite products is beyond FP32. index.html in DIR has the rest: what came
before, and what the last step lost.

The exit status is 0 if all bits are the same, 1 if they are not or if the
bundle cannot be read. JSON has the keys cause, step, operator, op, found,
level, same and checks (what, elements, differ, first, was, is).`

const replayExample = `  octavo train replay landed    # what octavo train --landing landed wrote
  OCTAVO_LEVEL=generic octavo train replay landed --json`

func newReplayCommand() *cobra.Command {
	var workers int
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "replay DIR",
		Short:   "Compute the first product that went wrong in a run again",
		Long:    replayLong,
		Example: replayExample,
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
	v, err := work(cmd, "there is no verdict", func(ctx context.Context, _ *display.Display) (*landing.Verdict, error) {
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
