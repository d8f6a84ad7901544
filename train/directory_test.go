package train

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

func entriesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// saveAt saves a run as if it had done some steps.
func saveAt(t *testing.T, d Directory, m *nn.Llama, o *optim.AdamW, step int) {
	t.Helper()
	var s Snapshot
	require.NoError(t, s.Take(m, o, Position{Step: step}))
	require.NoError(t, d.Save(t.Context(), &s))
}

// TestDirectory keeps the newest, goes back over what is damaged, and saves the same step
// again.
func TestDirectory(t *testing.T) {
	model, optimizer := newRun(t, tiny, optim.Moments{}, 5)
	d := Directory{Path: filepath.Join(t.TempDir(), "new"), Keep: 2}
	var step int
	use := func(c *Checkpoint) error {
		step = c.Position.Step
		return c.Restore(t.Context(), model, optimizer)
	}
	_, err := d.Resume(use)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "there is no checkpoint in "+d.Path)
	require.NoError(t, os.MkdirAll(filepath.Join(d.Path, "checkpoint-0000001.partial"), 0o777))
	passed, err := d.Resume(use)
	require.ErrorIs(t, err, fs.ErrNotExist, "the first one was never written to the end")
	require.Len(t, passed, 1)
	for _, step := range []int{1, 2, 30, 12345678} {
		saveAt(t, d, model, optimizer, step)
	}
	require.Equal(t, []string{"checkpoint-0000030", "checkpoint-12345678"}, entriesOf(t, d.Path))
	passed, err = d.Resume(use)
	require.NoError(t, err)
	require.Empty(t, passed)
	require.Equal(t, 12345678, step)

	newest := filepath.Join(d.Path, "checkpoint-12345678")
	part := filepath.Join(newest, "part-00000-of-00001.safetensors")
	data, err := os.ReadFile(part)
	require.NoError(t, err)
	data[len(data)-1] ^= 1
	require.NoError(t, os.WriteFile(part, data, 0o666))
	require.NoError(t, os.Mkdir(filepath.Join(d.Path, "checkpoint-20000000.partial"), 0o777))
	before := bitsOf(model, optimizer)
	passed, err = d.Resume(use)
	require.NoError(t, err)
	require.Equal(t, 30, step)
	require.Len(t, passed, 2)
	require.ErrorContains(t, passed[0], "checkpoint-20000000.partial cannot be used: it was not written to the end")
	require.ErrorContains(t, passed[1], newest+" cannot be used: ")
	require.ErrorContains(t, passed[1], "part-00000-of-00001.safetensors: tensor ")
	require.True(t, reflect.DeepEqual(before, bitsOf(model, optimizer)))

	saveAt(t, d, model, optimizer, 31) // the run went back
	require.Equal(t, []string{"checkpoint-0000030", "checkpoint-0000031"}, entriesOf(t, d.Path))
	saveAt(t, d, model, optimizer, 31)
	require.Equal(t, []string{"checkpoint-0000030", "checkpoint-0000031"}, entriesOf(t, d.Path))

	other, _ := newRun(t, small(), optim.Moments{}, 5)
	passed, err = d.Resume(func(c *Checkpoint) error { return c.Restore(t.Context(), other, optimizer) })
	require.ErrorIs(t, err, ErrMismatch, "and not the one before")
	require.Empty(t, passed)
	mine := errors.New("mine")
	_, err = d.Resume(func(*Checkpoint) error { return mine })
	require.Equal(t, mine, err)
	for _, name := range entriesOf(t, d.Path) {
		require.NoError(t, os.Remove(filepath.Join(d.Path, name, manifestName)))
	}
	passed, err = d.Resume(use)
	require.ErrorIs(t, err, ErrCheckpoint)
	require.NotErrorIs(t, err, fs.ErrNotExist)
	require.Len(t, passed, 2)
}

// TestDirectoryWithOthers: what is not a run's stays, under whatever name.
func TestDirectoryWithOthers(t *testing.T) {
	model, optimizer := newRun(t, tiny, optim.Moments{}, 5)
	d := Directory{Path: t.TempDir()}
	foreign := []string{
		filepath.Join("checkpoint-1000000", "model.safetensors"), filepath.Join("checkpoint-1000000", manifestName),
		filepath.Join("checkpoint-0000001.partial", "notes"), filepath.Join("checkpoint-5", "x"), "checkpoint-0000009",
	}
	for _, name := range foreign {
		require.NoError(t, os.MkdirAll(filepath.Join(d.Path, filepath.Dir(name)), 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(d.Path, name), []byte("mine"), 0o666))
	}
	saveAt(t, d, model, optimizer, 7)
	saveAt(t, d, model, optimizer, 8)
	for _, name := range foreign {
		require.FileExists(t, filepath.Join(d.Path, name))
	}
	require.NoDirExists(t, filepath.Join(d.Path, nameAfter(7)))
	require.FileExists(t, filepath.Join(d.Path, nameAfter(8), manifestName))
}

// TestDirectoryThatCannotBeWritten: the last checkpoint stays what it was.
func TestDirectoryThatCannotBeWritten(t *testing.T) {
	model, optimizer := newRun(t, tiny, optim.Moments{}, 5)
	d := Directory{Path: t.TempDir(), Ranks: 3}
	saveAt(t, d, model, optimizer, 3)
	want := bitsOf(model, optimizer)
	var s Snapshot
	require.NoError(t, s.Take(model, optimizer, Position{Step: 6}))
	blocked := filepath.Join(d.Path, nameAfter(6)+partialSuffix)
	require.NoError(t, os.WriteFile(blocked, nil, 0o666))
	var system *fs.PathError
	require.ErrorAs(t, d.Save(t.Context(), &s), &system)
	require.NoError(t, os.Remove(blocked))
	model.Params()[1].Value[3] = float32(math.Inf(1))
	require.NoError(t, s.Take(model, optimizer, Position{Step: 6}))
	require.ErrorContains(t, d.Save(t.Context(), &s), "element 3 is +Inf")
	require.ErrorIs(t, d.Save(t.Context()), ErrInput)
	require.ErrorIs(t, Directory{Path: d.Path, Ranks: -1}.Save(t.Context(), &s), ErrInput)
	require.Equal(t, []string{nameAfter(3)}, entriesOf(t, d.Path))
	_, err := d.Resume(func(c *Checkpoint) error { return c.Restore(t.Context(), model, optimizer) })
	require.NoError(t, err)
	require.True(t, reflect.DeepEqual(want, bitsOf(model, optimizer)))
}

// TestReplacedCheckpoint: a process that was killed between taking the old one of a step
// out of the way and giving the new one its name leaves the old one.
func TestReplacedCheckpoint(t *testing.T) {
	model, optimizer := newRun(t, tiny, optim.Moments{}, 5)
	d := Directory{Path: t.TempDir()}
	saveAt(t, d, model, optimizer, 3)
	path := filepath.Join(d.Path, nameAfter(3))
	require.NoError(t, os.Rename(path, path+replacedSuffix))
	require.NoError(t, os.Mkdir(path+partialSuffix, 0o777))
	passed, err := d.Resume(func(c *Checkpoint) error { return c.Restore(t.Context(), model, optimizer) })
	require.NoError(t, err)
	require.Len(t, passed, 1)
	saveAt(t, d, model, optimizer, 3)
	require.Equal(t, []string{nameAfter(3)}, entriesOf(t, d.Path))
}

// TestSaveBySnapshotsOfParts: snapshots of all parts make the checkpoint of the whole.
func TestSaveBySnapshotsOfParts(t *testing.T) {
	r := runs()["moments in fp8-expanded"]
	model, optimizer := newRun(t, r.Config, r.Moments, 5)
	resume(t, model, optimizer, 0, 1)
	whole, parts := Directory{Path: t.TempDir(), Ranks: 3}, Directory{Path: t.TempDir()}
	saveAt(t, whole, model, optimizer, 1)
	var all []*Snapshot
	for rank := range 3 {
		s := new(Snapshot)
		require.NoError(t, takePart(s, model, optimizer, Position{Step: 1}, Partition{rank, 3}))
		all = append(all, s)
	}
	require.ErrorIs(t, parts.Save(t.Context(), all[1:]...), ErrCheckpoint)
	require.Empty(t, entriesOf(t, parts.Path))
	require.NoError(t, parts.Save(t.Context(), all...))
	requireSameDirectory(t, filepath.Join(whole.Path, nameAfter(1)), filepath.Join(parts.Path, nameAfter(1)))
}
