package comparison

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/octavo-fp8/octavo/internal/syncdir"
	"github.com/octavo-fp8/octavo/train"
)

// Checkpoints say where and when a run is kept, so that another can go on from there
// to the same bits. The zero value keeps nothing.
//
// A checkpoint is a directory in Dir with both models and everything else of one
// step. It gets its name when it is whole and on disk, and only then older ones are
// removed, so that a crash at any moment leaves at least the last one that was written.
type Checkpoints struct {
	Dir     string
	Every   int         // steps from one to the next, and one at the end or when the run is stopped; 0: none
	Keep    int         // how many of the newest are kept; 0: 1
	Async   bool        // one is copied and written while the run goes on, until the next is due
	Resume  bool        // begin with the newest whole one
	Replace bool        // those of an earlier run go when there is the first of this one
	Warn    func(error) // is told why a newer one cannot be used; nil: nobody is
}

// begin makes r what it was at the newest checkpoint if the run resumes. If it does
// not, there must be none that are not to be replaced.
func (c Checkpoints) begin(ctx context.Context, r *runner) error {
	if c.Dir == "" || c.Replace {
		return nil
	}
	names, err := c.names(wholeName)
	switch {
	case err != nil:
		return err
	case c.Resume:
		return c.resume(ctx, r, names)
	case len(names) > 0:
		return fmt.Errorf("%s is of an earlier run: go on with it by --resume, name another directory with -o, or replace that run with --overwrite", filepath.Join(c.Dir, names[0]))
	}
	return nil
}

func (c Checkpoints) resume(ctx context.Context, r *runner, names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("there is no checkpoint in %s to resume from: name with -o the directory of a run with --checkpoint-every, or leave out --resume", c.Dir)
	}
	var unusable []error
	for i, name := range names {
		path := filepath.Join(c.Dir, name)
		var other differs
		err := load(ctx, path, r)
		if err == nil || errors.As(err, &other) {
			c.warn(unusable)
			r.kept = slices.Clone(names[i:])
			slices.Reverse(r.kept)
			return err
		}
		unusable = append(unusable, fmt.Errorf("checkpoint %s cannot be used: %w", path, err))
	}
	return fmt.Errorf("%w: train anew in another directory, without --resume", inOneLine(unusable))
}

// inOneLine is errors.Join for an error that is printed in one line.
func inOneLine(errs []error) (all error) {
	for _, err := range errs {
		if all == nil {
			all = err
			continue
		}
		all = fmt.Errorf("%w; %w", all, err)
	}
	return all
}

func (c Checkpoints) warn(unusable []error) {
	if c.Warn == nil {
		return
	}
	for _, err := range unusable {
		c.Warn(err)
	}
}

// step writes a checkpoint if one is due after the last step.
func (c Checkpoints) step(ctx context.Context, r *runner, stopped bool) error {
	done := len(r.result.Points)
	if c.Every == 0 || done%c.Every != 0 && done < r.result.Options.Steps && !stopped {
		return nil
	}
	after := func(err error) error {
		if err != nil {
			return fmt.Errorf("checkpoint after %d steps: %w", done, err)
		}
		return nil
	}
	r.saver.Sync = !c.Async
	r.copied.fp32.Beside, r.copied.fp8.Beside = c.Async, c.Async
	_, err := r.saver.Save(ctx, func() error {
		return after(r.copied.take(r, c.flags(r.result)...))
	}, func(ctx context.Context) error {
		return after(c.save(ctx, &r.copied, &r.kept, fmt.Sprintf("checkpoint-%07d", done)))
	})
	return err
}

var (
	wholeName = regexp.MustCompile(`^checkpoint-[0-9]{7,}$`)
	anyName   = regexp.MustCompile(`^checkpoint-[0-9]{7,}(\.partial)?$`)
)

// save writes a checkpoint, and then removes all others but the newest of this run, which
// are kept.
func (c Checkpoints) save(ctx context.Context, run *copied, kept *[]string, name string) error {
	path := filepath.Join(c.Dir, name)
	partial := path + ".partial"
	if err := removeCheckpoint(partial); err != nil {
		return err
	}
	if err := os.MkdirAll(partial, 0o777); err != nil {
		return err
	}
	defer removeCheckpoint(partial) // in vain once it is renamed
	if err := run.write(ctx, partial); err != nil {
		return err
	}
	if err := syncdir.Sync(partial); err != nil {
		return err
	}
	if err := removeCheckpoint(path); err != nil { // it could not be used
		return err
	}
	if err := os.Rename(partial, path); err != nil {
		return err
	}
	if err := syncdir.Sync(c.Dir); err != nil {
		return err
	}
	names := append(*kept, name)
	*kept = names[max(0, len(names)-max(c.Keep, 1)):]
	return removeCheckpoints(c.Dir, *kept)
}

// flags returns what a run is given besides its options.
func (c Checkpoints) flags(r *Result) []Flag {
	flags := []Flag{
		{"checkpoint-every", fmt.Sprint(c.Every)}, {"keep-checkpoints", fmt.Sprint(max(c.Keep, 1))},
		{"checkpoint-sync", fmt.Sprint(!c.Async)},
	}
	if path := r.Text.Path; path != "" {
		flags = append(flags, Flag{"text", path})
	}
	if path := r.Options.RulesPath; path != "" {
		flags = append(flags, Flag{"rules", path})
	}
	if b := r.Options.Budget; b != (Budget{}) {
		flags = append(flags, Flag{"activation-budget", b.String()})
	}
	return flags
}

// SavedFlags returns the flags of the run whose checkpoints a directory has, for one
// that resumes without giving them again: those of the newest that can be read. There
// are none if none can.
func SavedFlags(dir string) ([]Flag, error) {
	names, err := (Checkpoints{Dir: dir}).names(wholeName)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if run, err := readFlags(filepath.Join(dir, name)); err == nil {
			return slices.Concat(run.Flags, run.Others), nil
		}
	}
	return nil, nil
}

func readFlags(dir string) (saved, error) {
	model, err := train.OpenCheckpoint(filepath.Join(dir, fp32File))
	if err != nil {
		return saved{}, err
	}
	defer model.Close()
	return runOf(dir, model)
}

// RemoveCheckpoints removes those of an earlier run from a directory.
func RemoveCheckpoints(dir string) error { return removeCheckpoints(dir, nil) }

func removeCheckpoints(dir string, keep []string) error {
	names, err := (Checkpoints{Dir: dir}).names(anyName)
	for _, name := range names {
		if !slices.Contains(keep, name) {
			err = errors.Join(err, removeCheckpoint(filepath.Join(dir, name)))
		}
	}
	return err
}

// removeCheckpoint removes the files of a checkpoint, and its directory unless there is
// something else in it: other programs have directories of such names too.
func removeCheckpoint(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	foreign := false
	for _, e := range entries {
		if isOurs(e.Name()) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		} else {
			foreign = true
		}
	}
	if foreign || err != nil {
		return err
	}
	return os.Remove(dir)
}

// isOurs reports whether a checkpoint may have a file of that name, or may have been
// writing it when it was cut off.
func isOurs(name string) bool {
	return slices.Contains([]string{fp32File, fp8File, runFile, timesFile, oldRunFile}, name) || strings.HasPrefix(name, ".octavo-")
}

// Newest returns the one of several directories in which the newest checkpoint is, by
// the time at which it was written, or "" if none has any.
func Newest(dirs []string) (newest string) {
	var at time.Time
	for _, dir := range dirs {
		names, err := (Checkpoints{Dir: dir}).names(wholeName)
		if err != nil || len(names) == 0 {
			continue
		}
		stat, err := os.Stat(filepath.Join(dir, names[0], runFile))
		if err == nil && !stat.ModTime().Before(at) {
			newest, at = dir, stat.ModTime()
		}
	}
	return newest
}

// names returns the entries of Dir that match, the newest step first.
func (c Checkpoints) names(match *regexp.Regexp) (names []string, err error) {
	entries, err := os.ReadDir(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: name another directory with -o", err)
	}
	for _, e := range entries {
		if match.MatchString(e.Name()) && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a)) })
	return names, nil
}
