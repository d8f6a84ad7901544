package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/cmd/internal/landing"
)

const replayLong = `Replay computes a product in FP8 again, from the bundle that octavo train
--landing left in DIR: the first that went wrong in a run. Operands are
quantized again from the values that they were made of, with the same recipes,
scales and seeds, where more than their codes was kept; then they are
multiplied. Codes, scales and result are compared with those of the run, bit
for bit: they are the same on every machine and at every level (OCTAVO_LEVEL).

What is said first is why the run stopped, which element of the product is the
first bad one, and why: it came in with an operand, it saturated, it became
zero, or the sum of finite products is beyond FP32. index.html in DIR has the
rest: what came before, and what the last step lost.

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
	ctx, stop := untilSignal(cmd)
	defer stop()
	bundle, err := landing.Read(dir)
	if err != nil {
		return fmt.Errorf("%w: name a directory that octavo train --landing wrote", err)
	}
	v, err := bundle.Replay(ctx, workers)
	switch {
	case errors.Is(err, context.Canceled):
		return stopped(ctx, "there is no verdict")
	case err != nil:
		return err
	case asJSON:
		err = jsonout.Print(cmd.OutOrStdout(), v)
	default:
		err = v.WriteText(cmd.OutOrStdout())
	}
	if failure := v.Failure(); err == nil && failure != "" {
		return errors.New(failure)
	}
	return err
}
