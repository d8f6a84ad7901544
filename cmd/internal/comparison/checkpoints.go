package comparison

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Checkpoints say where and when a run is kept, so that another can go on from there
// to the same bits. The zero value keeps nothing.
//
// A checkpoint is a directory in Dir with both models and everything else of one
// step. It gets its name when it is whole, and only then those before it are
// removed, so that a crash at any moment leaves at least the last one.
type Checkpoints struct {
	Dir    string
	Every  int         // steps from one to the next, and one when the run is stopped; 0: none
	Resume bool        // begin with the newest whole one
	Warn   func(error) // is told why a newer one cannot be used; nil: nobody is
}

// begin makes r what it was at the newest checkpoint if the run resumes. If it does
// not, there must be none that the run would replace.
func (c Checkpoints) begin(ctx context.Context, r *runner) error {
	if !c.Resume && c.Every == 0 {
		return nil
	}
	names, err := c.names(wholeName)
	switch {
	case err != nil:
		return err
	case c.Resume:
		return c.resume(ctx, r, names)
	case len(names) > 0:
		return fmt.Errorf("%s is of an earlier run: go on with it by --resume, or name another directory with --out", filepath.Join(c.Dir, names[0]))
	}
	return nil
}

func (c Checkpoints) resume(ctx context.Context, r *runner, names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("there is no checkpoint in %s to resume from: name the --out of a run with --checkpoint-every, or leave out --resume", c.Dir)
	}
	var unusable []error
	for _, name := range names {
		path := filepath.Join(c.Dir, name)
		var other differs
		err := load(ctx, path, r)
		if err == nil || errors.As(err, &other) {
			c.warn(unusable)
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
	if c.Every == 0 || done%c.Every != 0 && !stopped {
		return nil
	}
	if err := c.save(ctx, r, fmt.Sprintf("checkpoint-%07d", done)); err != nil {
		return fmt.Errorf("checkpoint after %d steps: %w", done, err)
	}
	return nil
}

var (
	wholeName = regexp.MustCompile(`^checkpoint-[0-9]{7,}$`)
	anyName   = regexp.MustCompile(`^checkpoint-[0-9]{7,}(\.partial)?$`)
)

// save writes a checkpoint and then removes all others.
func (c Checkpoints) save(ctx context.Context, r *runner, name string) error {
	path := filepath.Join(c.Dir, name)
	partial := path + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := os.MkdirAll(partial, 0o777); err != nil {
		return err
	}
	defer os.RemoveAll(partial) // in vain once it is renamed
	if err := save(ctx, partial, r); err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil { // it could not be used
		return err
	}
	if err := os.Rename(partial, path); err != nil {
		return err
	}
	return c.removeBut(name)
}

func (c Checkpoints) removeBut(name string) error {
	others, err := c.names(anyName)
	for _, other := range others {
		if other != name {
			err = errors.Join(err, os.RemoveAll(filepath.Join(c.Dir, other)))
		}
	}
	return err
}

// names returns the entries of Dir that match, the newest step first.
func (c Checkpoints) names(match *regexp.Regexp) (names []string, err error) {
	entries, err := os.ReadDir(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: name another directory with --out", err)
	}
	for _, e := range entries {
		if match.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names, nil
}
