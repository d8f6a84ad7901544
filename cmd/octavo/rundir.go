package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/textout"
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

// inPlace makes an error about a file in the stage of a run, which nobody knows, one about the
// place that it is for.
func inPlace(err error, stage, dir string) error {
	var system *fs.PathError
	if !errors.As(err, &system) || !strings.HasPrefix(system.Path, stage) {
		return err
	}
	path := filepath.Join(dir, filepath.Base(system.Path))
	return fmt.Errorf("%s %s: %w", system.Op, textout.Name(path), system.Err)
}
