package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	show "github.com/octavo-fp8/octavo/cmd/internal/evaluate"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn/evaluate"
)

// directory claims the directory of a run; there is none without --out.
func (f *evaluateFlags) directory() (*outdir.Run, error) {
	switch {
	case f.resume && f.overwrite:
		return nil, usagef("--resume goes on with an evaluation and --overwrite replaces it: give one of them")
	case f.out == "" && (f.resume || f.overwrite):
		return nil, usagef("--resume and --overwrite are about the run in a directory: name it with -o")
	case f.out == "":
		return nil, nil
	}
	run, err := givenDirectory(f.out, outdir.Options{
		Files: []string{resultFile, pageFile}, Overwrite: f.overwrite || f.resume, Resume: !f.overwrite,
	})
	if err != nil {
		return nil, err
	}
	if f.stage, err = run.Stage(); err == nil {
		err = f.checkState()
	}
	if err != nil {
		run.Pause()
	}
	return run, err
}

// hasState reports whether there is something to go on from.
func (f *evaluateFlags) hasState() bool {
	_, err := os.Lstat(filepath.Join(f.stage, evaluate.StateName))
	return err == nil
}

// checkState returns an error unless there is what --resume goes on with, and else nothing to go on with.
func (f *evaluateFlags) checkState() error {
	entries, err := os.ReadDir(f.stage)
	if err != nil {
		return err
	}
	if !f.hasState() && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return !strings.HasPrefix(e.Name(), "evaluate-") && !strings.HasPrefix(e.Name(), ".octavo-") // which nobody goes on from
	}) {
		return usagef("%s has what another command that was cut off goes on from: name another directory with -o, or replace that with --overwrite",
			textout.Name(f.out))
	}
	_, err = outdir.Read(f.out)
	switch out := textout.Name(f.out); {
	case !f.resume && f.hasState():
		return usagef("%s has an evaluation that was cut off: go on with --resume, or start again with --overwrite", out)
	case f.resume && !f.hasState() && err == nil:
		return usagef("%s: %w, and none that was cut off: name another directory with -o, or replace it with --overwrite", out, outdir.ErrHasRun)
	}
	return nil
}

// stateOf says where the state of a run is, and tells the model from others by the names, sizes and
// times of its files.
func stateOf(c *checkpoint.Checkpoint, stage string) (evaluate.State, error) {
	h := sha256.New()
	for _, name := range append(c.Files(), checkpoint.ConfigName) {
		stat, err := os.Stat(filepath.Join(c.Dir(), name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // a file may say itself what config.json would
		case err != nil:
			return evaluate.State{}, err
		default:
			fmt.Fprintf(h, "%q %d %d\n", name, stat.Size(), stat.ModTime().UnixNano())
		}
	}
	return evaluate.State{Dir: stage, Model: fmt.Sprintf("%x", h.Sum(nil))}, nil
}

// end puts the files of a run into their places, or leaves what --resume goes on from and says so.
func (f *evaluateFlags) end(run *outdir.Run, report *show.Report, err error) error {
	if run == nil {
		return err
	}
	defer run.Pause()
	var stop stoppedError
	switch left := "what was done is in " + textout.Name(f.out) + ": go on with --resume"; {
	case err == nil:
	case errors.Is(err, evaluate.ErrState):
		return fmt.Errorf("%w: start again with --overwrite", err)
	case !f.hasState():
		run.Abort()
		return err
	case errors.As(err, &stop):
		stop.saved = left
		return stop
	default:
		return fmt.Errorf("%w: %s", err, left)
	}
	m := outdir.Manifest{Kind: "evaluate", Command: f.command, Machine: trainMachine()}
	if err := run.Add(resultFile, func(w io.Writer) error { return jsonout.Print(w, report) }); err != nil {
		return err
	}
	if err := run.Add(pageFile, func(w io.Writer) error { return report.WritePage(w, m.Command, m.Machine) }); err != nil {
		return err
	}
	return run.Commit(m)
}
