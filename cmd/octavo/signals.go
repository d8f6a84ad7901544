package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
)

// untilInterrupt returns a context that Ctrl-C ends, so that a command can
// leave no incomplete file behind. A second Ctrl-C ends the process.
func untilInterrupt(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
