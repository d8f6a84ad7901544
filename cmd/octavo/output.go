package main

import (
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// output is standard output, which its reader may close, as head does when it has
// enough. What is written after that is lost, and that is no error, so that a command
// goes on to write the files that it was asked for.
//
// On a terminal lines that are wider than it are folded, except in JSON.
type output struct {
	io.Writer
	closed bool
	begun  bool
	raw    bool   // nothing is folded
	line   []byte // that has not ended
}

func (o *output) Write(p []byte) (int, error) {
	if !o.begun {
		o.begun = true
		columns, _ := o.Screen()
		o.raw = o.raw || columns == 0 || bytes.HasPrefix(p, []byte("{")) || bytes.HasPrefix(p, []byte("["))
	}
	if o.raw {
		return o.put(p)
	}
	columns, _ := o.Screen() // which may have changed
	o.line = append(o.line, p...)
	for {
		i := bytes.IndexByte(o.line, '\n')
		if i < 0 {
			return len(p), nil
		}
		text := textout.Fold(string(o.line[:i]), columns) + "\n"
		o.line = o.line[i+1:]
		if _, err := o.put([]byte(text)); err != nil {
			return 0, err
		}
	}
}

// flush writes the beginning of a line that was not ended.
func (o *output) flush() { _, _ = o.put(o.line) }

func (o *output) put(p []byte) (int, error) {
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

// Screen is a terminal's; see [display.Screen].
func (o *output) Screen() (columns int, colors bool) { return display.Screen(o) }

// Fd is that of standard output.
func (o *output) Fd() uintptr {
	if file, ok := o.Writer.(*os.File); ok {
		return file.Fd()
	}
	return ^uintptr(0)
}

// oneStream reports whether standard output and standard error go to the same file or pipe.
func oneStream(stdout, stderr io.Writer) bool {
	o, ok := stdout.(*output)
	if !ok {
		return false
	}
	a, isFile := o.Writer.(*os.File)
	b, both := stderr.(*os.File)
	if !isFile || !both {
		return false
	}
	out, err := a.Stat()
	other, errOther := b.Stat()
	return err == nil && errOther == nil && os.SameFile(out, other)
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
