package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
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

// madeFiles are what a command makes in memory and writes into a directory as a run.
type madeFiles struct {
	dir  string
	kind string // of run
	with string // the rest of the command line that repeats it
	outdir.Options
	make func(ctx context.Context, d *display.Display) ([]outdir.File, error)
	list func(w io.Writer, files []outdir.File) error // prints which there are; nil: a line for each
}

// write makes and writes the files and prints which there are, unless --quiet is given.
func (m madeFiles) write(cmd *cobra.Command) error {
	run, err := givenDirectory(m.dir, m.Options)
	if err != nil {
		return err
	}
	defer run.Abort()
	files, err := work(cmd, "no file was written", m.make)
	if err != nil {
		return err
	}
	if err := run.AddFiles(files...); err != nil {
		return err
	}
	if err := run.Commit(outdir.Manifest{Kind: m.kind, Command: "octavo " + m.kind + m.with}); err != nil {
		return err
	}
	switch {
	case quiet(cmd):
		return nil
	case m.list != nil:
		return m.list(cmd.OutOrStdout(), files)
	}
	for _, f := range files {
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%9d  %s\n", len(f.Data), f.Name); err != nil {
			return err
		}
	}
	return nil
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
