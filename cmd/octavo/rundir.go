package main

import (
	"errors"
	"io"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
)

// runDirectory claims the directory of a run: the one given by -o, or without that the
// next free one of a name.
func runDirectory(name, out string, o outdir.Options) (*outdir.Run, error) {
	if out == "" {
		return outdir.Next(name)
	}
	return givenDirectory(out, o)
}

// givenDirectory claims a directory that the command line names.
func givenDirectory(out string, o outdir.Options) (*outdir.Run, error) {
	run, err := outdir.Create(out, o)
	if errors.Is(err, outdir.ErrHasRun) {
		return nil, usageError{err}
	}
	return run, err
}

// addData adds a file that is in memory to a run.
func addData(run *outdir.Run, name string, data []byte) error {
	return run.Add(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
