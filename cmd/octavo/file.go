package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/octavo-fp8/octavo/cmd/internal/machine"
	"github.com/octavo-fp8/octavo/internal/atomicfile"
)

// unwritten adds what to do to an error that is about the file to write.
func unwritten(out string, err error) error {
	var system *fs.PathError
	if errors.As(err, &system) && system.Path == out {
		return fmt.Errorf("%w: name another file with -o", err)
	}
	return err
}

// writePage writes a page to the file that a flag names, if any. The machine of the page is
// this one.
func writePage(path, flag string, write func(w io.Writer, machine string) error) error {
	if path == "" {
		return nil
	}
	err := atomicfile.Write(path, func(w io.Writer) error { return write(w, machine.Current().Platform()) })
	if err != nil {
		return fmt.Errorf("%w: name another file with %s", err, flag)
	}
	return nil
}

// sameFiles refuses to write one of the files that are being read. There may be none to write.
func sameFiles(read []string, out string) error {
	written, err := os.Stat(out)
	if err != nil {
		return nil
	}
	for _, in := range read {
		if stat, err := os.Stat(in); err == nil && os.SameFile(stat, written) {
			return usagef("%s and %s are the same file: write another one", in, out)
		}
	}
	return nil
}
