package main

import (
	"errors"
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
)

// runDirectory claims the directory of a run: the one given by -o, or without that the
// next free one of a name.
func runDirectory(name, out string, o outdir.Options) (*outdir.Run, error) {
	if out == "" {
		return outdir.Next(name)
	}
	run, err := outdir.Create(out, o)
	if errors.Is(err, outdir.ErrHasRun) {
		return nil, usageError{err}
	}
	return run, err
}

// inDirectory adds what to do to an error about --out.
func inDirectory(err error) error { return fmt.Errorf("%w: name another directory with --out", err) }
