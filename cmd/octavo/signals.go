package main

import (
	"context"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
)

// interruption is the cause of a context that a signal has ended.
type interruption struct{ os.Signal }

func (i interruption) Error() string { return "interrupted by a signal: " + i.String() }

// Is makes an interruption what functions return whose context was cancelled.
func (interruption) Is(target error) bool { return target == context.Canceled }

// untilSignal returns a context that ends when the process is asked to: by Ctrl-C
// (SIGINT), SIGTERM or SIGHUP, so that a command can save what it has and leave no
// incomplete file behind. A second signal ends the process, but not within a second of
// the first: some supervisors send two at once. Signals that the process was started to ignore, as nohup has it, stay ignored.
func untilSignal(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(cmd.Context())
	signals := make(chan os.Signal, 1)
	for _, s := range stopSignals {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	go func() {
		select {
		case s := <-signals:
			cancel(interruption{s})
			time.Sleep(time.Second)
		case <-ctx.Done():
		}
		signal.Stop(signals)
	}()
	return ctx, func() { cancel(nil) }
}
