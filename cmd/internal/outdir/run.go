package outdir

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// File is a file of a run in memory.
type File struct {
	Name, What string // what it is, for people
	Data       []byte
}

// Options say what a run may do with what is in its directory.
type Options struct {
	Overwrite bool     // the run that is there is replaced by the new one when that is complete
	Files     []string // names that the run is going to add, as far as they are known
	Flag      string   // that names the directory on the command line; "" is -o

	// Resume keeps what is in [Run.Stage] of a run that was killed or has paused. Otherwise
	// it is removed.
	Resume bool
}

// Run is a run that writes into a directory. Whoever creates one calls Abort in any
// case, and Commit before that if the run is complete. Not safe for concurrent use.
type Run struct {
	dir   string
	flag  string // that names it
	lock  *flock.Flock
	made  []string  // directories that were not there before, the outermost first
	old   *Manifest // of the run to be replaced; nil: there is none
	names []string  // of the files added
	done  bool

	live      []string // files that this run, or one that was killed, has published
	published bool     // by this one
	hidden    []File   // of the run to be replaced, in the place of which files are published
}

// ErrHasRun is the error of [Create] for a directory that holds a run.
var ErrHasRun = errors.New("it holds a run already")

// another says what to do about a directory that cannot be used.
func (r *Run) another() string { return "name another directory with " + r.flag }

// Create begins a run in a directory, which is made if need be. It is an error if the
// directory holds a run that is not to be replaced, if another run is at work there, or
// if one of the files to be added is there and is no run's.
func Create(dir string, o Options) (*Run, error) {
	r := &Run{dir: dir, flag: cmp.Or(o.Flag, "-o")}
	if dir == "" {
		return nil, fmt.Errorf("the name of the directory is empty: name one with %s", r.flag)
	}
	if err := r.claim(); err != nil {
		r.removeMade()
		return nil, err
	}
	if err := r.begin(o); err != nil {
		if o.Resume {
			r.Pause()
		} else {
			r.Abort()
		}
		return nil, err
	}
	return r, nil
}

// claim makes and locks the directory, which a run that ends may remove in between.
func (r *Run) claim() error {
	for range 100 {
		made, err := makeAll(r.dir)
		r.made = append(r.made, made...)
		if errors.Is(err, errRemoved) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, r.another())
		}
		if r.lock, err = lock(r.dir); err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w: %s", textout.Name(r.dir), withoutPath(err), r.another())
		}
	}
	return fmt.Errorf("%s: others keep removing it: %s", textout.Name(r.dir), r.another())
}

// begin tidies up after a run that was killed, and checks what is in the directory.
func (r *Run) begin(o Options) error {
	if err := r.recover(o.Resume); err != nil {
		return err
	}
	old, err := Read(r.dir)
	switch {
	case errors.Is(err, ErrNoRun):
	case err != nil:
		return fmt.Errorf("%w: %s", err, r.another())
	case !o.Overwrite:
		return fmt.Errorf("%s: %w: %s, or replace that run with --overwrite", textout.Name(r.dir), ErrHasRun, r.another())
	default:
		r.old = &old
	}
	if live, err := ReadLive(r.dir); err == nil {
		r.live = live.Files
	}
	for _, name := range o.Files {
		if err := r.checkFree(name); err != nil {
			return err
		}
	}
	return nil
}

// Dir is the directory of the run.
func (r *Run) Dir() string { return r.dir }

// checkFree refuses a name that a file has which is of no run, or anything but a file.
func (r *Run) checkFree(name string) error {
	path := filepath.Join(r.dir, name)
	stat, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %s", err, r.another())
	case stat.IsDir():
		return fmt.Errorf("%s is a directory, but the run has a file of that name: %s", textout.Name(path), r.another())
	case slices.Contains(r.live, name):
		return nil
	case r.old == nil || !slices.Contains(r.old.Files, name):
		return fmt.Errorf("%s is there and is of no run: move it away, or %s", textout.Name(path), r.another())
	}
	return nil
}

// Add writes a file of the run. Nobody sees it before Commit. Of two with one name the
// later counts.
func (r *Run) Add(name string, write func(io.Writer) error) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := r.checkFree(name); err != nil {
		return err
	}
	if err := r.stage(name, write); err != nil {
		return err
	}
	r.added(name)
	return nil
}

// AddFiles is Add of files in memory.
func (r *Run) AddFiles(files ...File) error {
	for _, f := range files {
		if err := r.Add(f.Name, func(w io.Writer) error {
			_, err := w.Write(f.Data)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Stage returns the hidden directory in which files of the run lie until Commit, for one that
// writes them by itself and then calls [Run.Adopt].
func (r *Run) Stage() (string, error) {
	partial := filepath.Join(r.dir, partialName)
	if err := os.Mkdir(partial, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", r.about(r.dir, err)
	}
	return partial, nil
}

// Adopt makes a file in [Run.Stage], complete and on disk, one of the run.
func (r *Run) Adopt(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := r.checkFree(name); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(r.dir, partialName, name)); err != nil {
		return r.about(filepath.Join(r.dir, name), err)
	}
	r.added(name)
	return nil
}

// added counts a file as one of the run.
func (r *Run) added(name string) {
	if !slices.Contains(r.names, name) {
		r.names = append(r.names, name)
	}
}

// stage writes a file into the hidden directory, and sees it on disk.
func (r *Run) stage(name string, write func(io.Writer) error) error {
	partial, err := r.Stage()
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(partial, name))
	if err != nil {
		return r.about(filepath.Join(r.dir, name), err)
	}
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	if e := file.Close(); err == nil {
		err = e
	}
	if err != nil {
		return r.about(filepath.Join(r.dir, name), err)
	}
	return nil
}

// about makes an error of the file system one about a path that people know.
func (r *Run) about(path string, err error) error {
	var system *fs.PathError
	if errors.As(err, &system) {
		return fmt.Errorf("%s %s: %w: %s", system.Op, textout.Name(path), system.Err, r.another())
	}
	return err
}

// withoutPath returns what is wrong, without where.
func withoutPath(err error) error {
	var system *fs.PathError
	if errors.As(err, &system) {
		return system.Err
	}
	return err
}

// Commit puts the files of the run into their places, in the order in which they were added,
// removes those of the run that it replaces, and writes the manifest. It ends the run.
func (r *Run) Commit(m Manifest) error {
	if r.done {
		return errors.New("the run has ended")
	}
	m.Version, m.Files = manifestVersion, r.names
	if err := r.stage(ManifestName, m.write); err != nil {
		return err
	}
	commit := filepath.Join(r.dir, commitName)
	if err := os.Rename(filepath.Join(r.dir, partialName), commit); err != nil {
		return r.about(r.dir, err)
	}
	if err := finish(r.dir); err != nil {
		return fmt.Errorf("%w: the complete files are in %s", err, textout.Name(commit))
	}
	r.made, r.published = nil, false
	r.Abort()
	return nil
}

// Abort ends the run unless it has ended, and leaves nothing of it.
func (r *Run) Abort() {
	if r.done {
		return
	}
	os.RemoveAll(filepath.Join(r.dir, partialName))
	if r.published {
		removeLive(r.dir, nil)
		for _, f := range r.hidden {
			_ = writeFile(r.dir, f)
		}
	}
	r.Pause()
}

// Pause ends the run unless it has ended, and leaves what is in [Run.Stage] for another with
// [Options.Resume].
func (r *Run) Pause() {
	if r.done {
		return
	}
	r.done = true
	os.Remove(filepath.Join(r.dir, partialName)) // if it is empty
	unlock(r.lock)
	r.removeMade()
}

// removeMade removes the directories that the run made, as far as they are empty.
func (r *Run) removeMade() {
	for _, dir := range slices.Backward(r.made) {
		os.Remove(dir)
	}
}

// makeAll makes a directory and those that it is in, and returns those that were not
// there before, the outermost first.
func makeAll(dir string) (made []string, err error) {
	err = os.Mkdir(dir, 0o777)
	if errors.Is(err, fs.ErrNotExist) {
		if parent := filepath.Dir(dir); parent != dir {
			if made, err = makeAll(parent); err != nil {
				return made, err
			}
			err = os.Mkdir(dir, 0o777)
		}
	}
	if err == nil {
		return append(made, dir), nil
	}
	if stat, e := os.Stat(dir); e == nil && stat.IsDir() {
		return made, nil // by somebody else
	} else if e == nil {
		return made, &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("it is there and is no directory")}
	}
	if _, e := os.Lstat(dir); errors.Is(err, fs.ErrExist) && errors.Is(e, fs.ErrNotExist) {
		return made, errRemoved
	}
	return made, err
}

// errRemoved is about a directory that was there and that somebody then removed.
var errRemoved = errors.New("it was removed")
