package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// The exit statuses, beside those of commands that a signal has stopped.
const (
	exitOK    = 0
	exitData  = 1 // what was read is wrong, or could not be read or written
	exitUsage = 2 // the command line makes no sense
	exitDoubt = 3 // a verdict is undecided
)

// usageError is what is wrong with a command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// doubtError says why a verdict is undecided.
type doubtError struct{ error }

// report writes err, which cmd returned, as one line of bounded length, whatever the
// names in it, and returns the exit status.
func report(stderr io.Writer, cmd *cobra.Command, err error) int {
	if err == nil || errors.Is(err, errClosed) {
		return exitOK
	}
	status, hint := exitData, ""
	if errors.As(err, &usageError{}) {
		status, hint = exitUsage, fmt.Sprintf(" (see %s --help)", cmd.CommandPath())
	}
	if errors.As(err, &doubtError{}) {
		status = exitDoubt
	}
	var by interruption
	var saved stoppedError
	switch {
	case errors.As(err, &saved):
		status = saved.by.status()
	case errors.As(err, &by):
		status, err = by.status(), by // what the command was at when it came explains nothing
	}
	fmt.Fprintf(stderr, "octavo: %s%s\n", textout.Line(message(cmd, err)), hint)
	return status
}

// warn writes a line about something that does not stop a command.
func warn(stderr io.Writer, format string, args ...any) {
	for i, arg := range args {
		if err, ok := arg.(error); ok {
			args[i] = message(nil, err)
		}
	}
	fmt.Fprintf(stderr, "octavo: warning: %s\n", textout.Line(fmt.Sprintf(format, args...)))
}
