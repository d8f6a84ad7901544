package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// interruption is the cause of a context that a signal has ended.
type interruption struct{ os.Signal }

func (i interruption) Error() string { return "stopped by " + i.name() }

// name is what people call the signal.
func (i interruption) name() string {
	switch i.Signal {
	case os.Interrupt:
		return "Ctrl-C"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.Signal(1): // SIGHUP, which package syscall does not name everywhere
		return "SIGHUP"
	}
	return i.Signal.String()
}

// status is the exit status of a command that the signal has stopped, as shells have it.
func (i interruption) status() int {
	if number, ok := i.Signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitData
}

// Is makes an interruption what functions return whose context was cancelled.
func (interruption) Is(target error) bool { return target == context.Canceled }

// stoppedError is what a command returns that a signal has stopped.
type stoppedError struct {
	by    interruption
	saved string
}

func (s stoppedError) Error() string { return s.by.Error() + ": " + s.saved }

// stopped returns the error of a command whose context has ended, with what was saved of
// its work, in a few words.
func stopped(ctx context.Context, saved string) error {
	var by interruption
	if errors.As(context.Cause(ctx), &by) {
		return stoppedError{by, saved}
	}
	return fmt.Errorf("%w: %s", context.Cause(ctx), saved)
}

// untilSignal returns a context that ends when the process is asked to: by Ctrl-C
// (SIGINT), SIGTERM or SIGHUP, so that a command can save what it has and leave no
// incomplete file behind. A second signal ends the process, but not within a second of
// the first: some supervisors send two at once. Signals that the process was started to
// ignore, as nohup has it, stay ignored.
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
