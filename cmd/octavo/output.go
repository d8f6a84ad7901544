package main

import (
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// output is standard output, which its reader may close, as head does when it has
// enough. What is written after that is lost, and that is no error, so that a command
// goes on to write the files that it was asked for.
type output struct {
	io.Writer
	closed bool
}

func (o *output) Write(p []byte) (int, error) {
	if o.closed {
		return len(p), nil
	}
	n, err := o.Writer.Write(p)
	if isClosedPipe(err) {
		o.closed = true
		return len(p), nil
	}
	return n, err
}

// Fd is that of standard output.
func (o *output) Fd() uintptr {
	if file, ok := o.Writer.(*os.File); ok {
		return file.Fd()
	}
	return ^uintptr(0)
}

// errClosed is what a command returns whose only result nobody reads any more. It is no
// error to the user.
var errClosed = errors.New("standard output is closed")

// soleOutput is standard output for a command that writes nothing else. Writing to it
// gives errClosed when its reader has closed it: then there is nothing left to do.
type soleOutput struct{ *output }

func (o soleOutput) Write(p []byte) (int, error) {
	n, err := o.output.Write(p)
	if o.closed {
		return 0, errClosed
	}
	return n, err
}

// soleOutputOf returns the standard output of a command that writes nothing else.
func soleOutputOf(cmd *cobra.Command) io.Writer {
	if o, ok := cmd.OutOrStdout().(*output); ok {
		return soleOutput{o}
	}
	return cmd.OutOrStdout()
}
