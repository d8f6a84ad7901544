package main

import (
	"context"
	"errors"
	"io"
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

// contextWriter is a writer that fails once its context has ended.
type contextWriter struct {
	ctx context.Context
	io.Writer
}

func (w contextWriter) Write(p []byte) (int, error) {
	if err := interrupted(w.ctx); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

// interrupted returns an error once the context of a command that writes a file has
// ended.
func interrupted(ctx context.Context) error {
	if ctx.Err() != nil {
		return errors.New("interrupted: no file was written")
	}
	return nil
}
