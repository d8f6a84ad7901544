package train

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
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/syncdir"
)

// Directory keeps the newest checkpoints of a run: after N steps that is a directory
// checkpoint-N, of seven digits at least, as [OpenCheckpoint] opens it. Whatever else is
// there is left alone.
//
// A checkpoint gets its name when it is whole and on disk, and only then older ones go:
// a process that is killed at any moment, a full disk or a machine that fails leave the
// last one that was saved. What was being written stays as checkpoint-N.partial until
// the next one is saved.
//
// A Directory is used by one goroutine at a time, and by one run.
type Directory struct {
	Path  string
	Keep  int // how many stay; 0: 1
	Ranks int // files of one that is saved from one snapshot; 0: 1
}

var checkpointName = regexp.MustCompile(`^checkpoint-([0-9]{7,18})(\.partial|\.replaced)?$`)

const (
	partialSuffix  = ".partial"
	replacedSuffix = ".replaced"
)

func nameAfter(steps int) string { return fmt.Sprintf("checkpoint-%07d", steps) }

// Save saves the snapshot of a whole run, or those of all parts of one, and removes all
// checkpoints but the newest Keep: those of later steps too, which the run went back
// from. The snapshots' Progress hears of it. There is an error, and all is as it was, if
// one cannot be saved, as [Snapshot.SavePart] and [Snapshot.Commit] say.
func (d Directory) Save(ctx context.Context, snapshots ...*Snapshot) error {
	if err := d.save(ctx, snapshots); err != nil {
		return fmt.Errorf("train: saving to %s: %w", d.Path, err)
	}
	return nil
}

func (d Directory) save(ctx context.Context, snapshots []*Snapshot) error {
	if d.Keep < 0 || d.Ranks < 0 || d.Ranks > maxRanks {
		return inputError("Directory.Keep is %d and Ranks %d: want at least 0, and at most %d ranks", d.Keep, d.Ranks, maxRanks)
	}
	if len(snapshots) == 0 {
		return inputError("there is no snapshot")
	}
	path := filepath.Join(d.Path, nameAfter(max(snapshots[0].Position.Step, 0)))
	partial := path + partialSuffix
	if err := removeCheckpoint(partial); err != nil {
		return err
	}
	defer removeCheckpoint(partial) // in vain once it has its name
	if err := d.write(ctx, partial, snapshots); err != nil {
		return err
	}
	if err := replaceCheckpoint(partial, path); err != nil {
		return err
	}
	return d.removeOthers(filepath.Base(path))
}

// write writes all files of a checkpoint.
func (d Directory) write(ctx context.Context, dir string, snapshots []*Snapshot) error {
	c, err := snapshots[0].saved()
	if err != nil {
		return err
	}
	if len(snapshots) == 1 && c.part.isWhole() {
		ranks := max(d.Ranks, 1)
		for rank := range ranks {
			if err := c.cut(Partition{rank, ranks}).savePart(ctx, snapshots[0].Progress, dir); err != nil {
				return err
			}
		}
		return c.cut(Partition{0, ranks}).commit(ctx, dir)
	}
	for _, s := range snapshots {
		if err := s.SavePart(ctx, dir); err != nil {
			return err
		}
	}
	return c.commit(ctx, dir)
}

// replaceCheckpoint gives a whole checkpoint its name. One of that name is out of the way
// before, and gone after.
func replaceCheckpoint(partial, path string) error {
	if err := syncdir.Sync(partial); err != nil {
		return err
	}
	replaced := path + replacedSuffix
	if _, err := os.Lstat(path); err == nil {
		if err := removeCheckpoint(replaced); err != nil {
			return err
		}
		if err := os.Rename(path, replaced); err != nil {
			return err
		}
	}
	if err := os.Rename(partial, path); err != nil {
		return err
	}
	if err := syncdir.Sync(filepath.Dir(path)); err != nil {
		return err
	}
	return removeCheckpoint(replaced)
}

// removeOthers removes all but the newest, which is there, and as many of those before it
// as are to stay and can be opened.
func (d Directory) removeOthers(newest string) error {
	names, err := d.names()
	kept := 0
	for _, name := range names {
		if name == newest {
			kept = 1
			continue
		}
		path := filepath.Join(d.Path, name)
		if kept > 0 && kept < d.Keep && canBeOpened(path) {
			kept++
			continue
		}
		err = errors.Join(err, removeCheckpoint(path))
	}
	return err
}

func canBeOpened(path string) bool {
	c, err := OpenCheckpoint(path)
	if err == nil {
		c.Close()
	}
	return err == nil && filepath.Ext(path) == ""
}

// names returns the checkpoints, the newest step first, and of one step that which has
// its name before what was replaced or is not whole.
func (d Directory) names() (names []string, err error) {
	entries, err := os.ReadDir(d.Path)
	for _, e := range entries {
		if e.IsDir() && checkpointName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(stepsIn(b), stepsIn(a)), cmp.Compare(len(a), len(b)), cmp.Compare(b, a))
	})
	return names, err
}

func stepsIn(name string) int64 {
	n, _ := strconv.ParseInt(checkpointName.FindStringSubmatch(name)[1], 10, 64)
	return n
}

// Resume calls use with the newest checkpoint, open, for [Checkpoint.Restore] or, rank by
// rank, [Checkpoint.RestorePieces]. Where it cannot be opened, or use returns that it is
// damaged, of a version that is not read, or that it cannot be read (an [fs.PathError]),
// the one before takes its place. passedOver says, in one error for each that did not
// serve, which and why, directories that were still being written among them.
//
// Any other error of use is returned, such as [ErrMismatch]: an older checkpoint would be
// of another run as well. It is [fs.ErrNotExist] if there is none that was written to the
// end, so that a run may begin anew, and [ErrCheckpoint] if there is but none serves.
func (d Directory) Resume(use func(c *Checkpoint) error) (passedOver []error, err error) {
	names, err := d.names()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("train: resuming: %w", err)
	}
	whole := 0
	for _, name := range names {
		path := filepath.Join(d.Path, name)
		err := useCheckpoint(path, use)
		switch {
		case err == nil:
			return passedOver, nil
		case !isUnusable(err):
			return passedOver, err
		}
		passedOver = append(passedOver, fmt.Errorf("checkpoint %s cannot be used: %w", path, err))
		if !strings.HasSuffix(name, partialSuffix) {
			whole++
		}
	}
	if whole == 0 {
		err := fmt.Errorf("train: there is no checkpoint in %s to resume from: %w", d.Path, fs.ErrNotExist)
		return passedOver, err
	}
	return passedOver, damaged("train: no checkpoint in %s can be used", d.Path)
}

func useCheckpoint(path string, use func(c *Checkpoint) error) error {
	if strings.HasSuffix(path, partialSuffix) {
		return damaged("it was not written to the end")
	}
	c, err := OpenCheckpoint(path)
	if err != nil {
		return err
	}
	defer c.Close()
	return use(c)
}

// isUnusable reports whether an error is about a checkpoint itself.
func isUnusable(err error) bool {
	var file *fs.PathError
	return errors.Is(err, ErrCheckpoint) || errors.Is(err, ErrVersion) || errors.As(err, &file)
}

var partFileName = regexp.MustCompile(`^part-[0-9]{5}-of-[0-9]{5}\.safetensors$`)

// removeCheckpoint removes the files of a checkpoint, the manifest first, so that what is
// left is none, and the directory unless there is something else in it. Other programs
// have directories of such names too.
func removeCheckpoint(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var ours, all []string
	for _, e := range entries {
		all = append(all, e.Name())
		if partFileName.MatchString(e.Name()) || strings.HasPrefix(e.Name(), ".octavo-") {
			ours = append(ours, e.Name())
		}
	}
	if len(ours) > 0 && slices.Contains(all, manifestName) {
		ours = slices.Insert(ours, 0, manifestName)
	}
	for _, name := range ours {
		if err == nil {
			err = os.Remove(filepath.Join(dir, name))
		}
	}
	if err != nil || len(ours) < len(all) {
		return err
	}
	return os.Remove(dir)
}
