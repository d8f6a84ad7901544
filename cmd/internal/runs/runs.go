// Package runs reads what runs of octavo train and octavo lab have left in their
// directories, and puts several side by side: as a table, as JSON and as one page.
package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/progress"
)

// The kinds of runs, as manifests have them.
const (
	kindTrain = "train"
	kindLab   = "lab"
)

// Run is what a run has in common with all others.
type Run struct {
	Name    string // the part of its directory by which it differs from the others
	Dir     string // as it was named or found
	Command string // that repeats it
	Machine string
	Files   []string // of the directory
}

// Set is the runs that are compared.
type Set struct {
	Train []Train
	Lab   []Lab

	LeftOut []string // names of runs that show nothing, since they begin or end
	unended []string // names of runs beside which is a later one that was killed
}

// Read reads the runs in directories: see [Find]. It says to reporter, which may be nil,
// how many it has read. Errors name the file and what is wrong with it.
func Read(ctx context.Context, dirs []string, reporter progress.Reporter) (*Set, error) {
	found, err := find(dirs)
	if err != nil {
		return nil, err
	}
	set := new(Set)
	for i, at := range found {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		err := set.add(at)
		if errors.Is(err, fs.ErrNotExist) { // it may have ended since it was found
			if now, found := runIn(at.dir); found == nil {
				now.name = at.name
				at, err = now, set.add(now)
			}
		}
		switch {
		case at.live && errors.Is(err, fs.ErrNotExist) && len(set.LeftOut) < len(found)-1: // others are left
			set.LeftOut = append(set.LeftOut, at.name)
		case err != nil:
			return nil, err
		case at.unended:
			set.unended = append(set.unended, at.name)
		}
		if reporter != nil {
			reporter.Progress("reading runs", int64(i+1), int64(len(found)))
		}
	}
	set.setBaselines()
	return set, nil
}

// add reads the run at a place.
func (s *Set) add(at place) error {
	r := Run{Name: at.name, Dir: at.dir, Command: at.manifest.Command, Machine: at.manifest.Machine, Files: slices.Sorted(slices.Values(at.manifest.Files))}
	switch at.manifest.Kind {
	case kindTrain:
		read := readTrain
		if at.live {
			read = readLive
		}
		t, err := read(r)
		if err != nil {
			return err
		}
		s.Train = append(s.Train, t)
	case kindLab:
		l, err := readLab(r)
		if err != nil {
			return err
		}
		s.Lab = append(s.Lab, l)
	default:
		return fmt.Errorf("%s: the run is one of %s: want one of octavo train or octavo lab",
			textout.Name(filepath.Join(at.dir, outdir.ManifestName)), textout.Quoted("octavo "+at.manifest.Kind))
	}
	return nil
}

// path returns the path of a file of the run, for people if it is in an error.
func (r Run) path(name string) string { return filepath.Join(r.Dir, name) }

// Holds reports whether a file belongs to one of the runs.
func (s *Set) Holds(same func(path string) bool) bool {
	for _, r := range s.runs() {
		for _, name := range append([]string{outdir.ManifestName, outdir.LiveName}, r.Files...) {
			if same(r.path(name)) {
				return true
			}
		}
	}
	return false
}

// runs returns all runs, those of train first.
func (s *Set) runs() (all []Run) {
	for _, t := range s.Train {
		all = append(all, t.Run)
	}
	for _, l := range s.Lab {
		all = append(all, l.Run)
	}
	return all
}
