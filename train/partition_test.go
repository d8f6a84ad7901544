package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

// TestPartRange compares with dealing out block by block.
func TestPartRange(t *testing.T) {
	for n := range 40 {
		for _, block := range []int{1, 2, 3, 16, 100} {
			for _, ranks := range []int{1, 2, 3, 7, 64} {
				owner := make([]int, n)
				for i := range owner {
					blocks := (n + block - 1) / block
					for owner[i] = 0; (owner[i]+1)*blocks/ranks <= i/block; owner[i]++ {
					}
				}
				next := 0
				for rank := range ranks {
					lo, hi := Partition{rank, ranks}.Range(n, block)
					require.Equal(t, next, lo)
					for i := lo; i < hi; i++ {
						require.Equal(t, rank, owner[i], "%d of %d in %d", i, n, block)
					}
					next = hi
				}
				require.Equal(t, n, next)
			}
		}
	}
	lo, hi := Partition{1, 2}.Range(10, 4)
	require.Equal(t, []int{4, 10}, []int{lo, hi})
	lo, hi = Partition{}.Range(10, 4)
	require.Equal(t, []int{0, 10}, []int{lo, hi})
	for _, p := range []Partition{{1, 0}, {0, -1}, {-1, 2}, {2, 2}, {0, 1 << 17}} {
		require.ErrorIs(t, p.Check(), ErrInput, "%v", p)
		require.Panics(t, func() { p.Range(1, 1) })
	}
}

// reshardedRuns have every kind of moment, of sizes that neither blocks nor ranks divide.
func reshardedRuns() map[string]struct {
	nn.Config
	optim.Moments
} {
	all := runs()
	maps.DeleteFunc(all, func(name string, _ struct {
		nn.Config
		optim.Moments
	}) bool {
		if testing.Short() {
			return name != "moments in fp8-expanded" && name != "stochastic bf16"
		}
		return !strings.HasPrefix(name, "moments in") && !strings.HasPrefix(name, "stochastic")
	})
	return all
}

// partPieces returns what a part has of parameters, whose moments o has of that part only.
func partPieces(params []*nn.Param, o *optim.AdamW, part Partition) (pieces []Piece) {
	for _, p := range params {
		lo, hi := part.Range(len(p.Value), blockOf(o))
		pieces = append(pieces, Piece{At: lo, Param: &nn.Param{
			Name: p.Name, Rows: 1, Cols: hi - lo, Decay: p.Decay, Value: p.Value[lo:hi], Grad: p.Grad[lo:hi],
		}})
	}
	return pieces
}

// takePart takes the part of a rank, whose optimizer has the moments of the part or of all.
func takePart(s *Snapshot, m Model, o *optim.AdamW, position Position, part Partition) error {
	pieces := wholePieces(m.Params())
	for i := range pieces {
		pieces[i].Save = part
	}
	if part.Check() == nil {
		if own := partPieces(m.Params(), o, part); o.Steps() > 0 {
			if _, err := o.Tensors(paramsOf(own)); err == nil {
				pieces = own
			}
		}
	}
	return s.TakePieces(WholeOf(m), o, position, part, pieces)
}

// restorePart gives a rank its part of values and moments, and the scales.
func restorePart(ctx context.Context, c *Checkpoint, m Model, o *optim.AdamW, part Partition) error {
	if err := c.RestorePieces(ctx, WholeOf(m), o, partPieces(m.Params(), o, part)); err != nil {
		return err
	}
	return m.Shared().Scaling().Restore(c.Scaling)
}

// TestReshard saves by R ranks and reads by R': the whole run, and rank by rank, of which
// each saves what it read, by the name of R' again.
func TestReshard(t *testing.T) {
	ranks := []int{1, 2, 3, 7}
	if testing.Short() {
		ranks = []int{1, 3, 7}
	}
	for name, r := range reshardedRuns() {
		t.Run(name, func(t *testing.T) {
			model, optimizer := newRun(t, r.Config, r.Moments, 5)
			resume(t, model, optimizer, 0, 2)
			want := bitsOf(model, optimizer)
			var s Snapshot
			require.NoError(t, s.Take(model, optimizer, Position{Step: 2}))
			root := t.TempDir()
			for _, n := range ranks {
				d := Directory{Path: filepath.Join(root, fmt.Sprint(n)), Ranks: n}
				require.NoError(t, d.Save(t.Context(), &s))
			}
			for _, from := range ranks {
				path := filepath.Join(root, fmt.Sprint(from), nameAfter(2))
				whole, again := newRun(t, r.Config, r.Moments, 9)
				position, err := LoadCheckpoint(t.Context(), path, whole, again)
				require.NoError(t, err)
				require.Equal(t, 2, position.Step)
				require.True(t, reflect.DeepEqual(want, bitsOf(whole, again)))
				for _, to := range ranks {
					dir := filepath.Join(root, fmt.Sprint(from, "to", to))
					reshard(t, path, dir, r.Config, r.Moments, to)
					requireSameDirectory(t, filepath.Join(root, fmt.Sprint(to), nameAfter(2)), dir)
				}
			}
		})
	}
}

// reshard reads a checkpoint by ranks that have their moments only, and saves it by them,
// in whatever order.
func reshard(t *testing.T, path, dir string, cfg nn.Config, moments optim.Moments, ranks int) {
	var wait sync.WaitGroup
	snapshots := make([]Snapshot, ranks)
	errs := make([]error, ranks)
	models := make([]*nn.Llama, ranks)
	for rank := range ranks {
		models[rank], _ = newRun(t, cfg, moments, uint64(rank))
	}
	for rank := range ranks {
		wait.Go(func() {
			_, o := newRun(t, cfg, moments, 1)
			part := Partition{rank, ranks}
			errs[rank] = func() error {
				c, err := OpenCheckpoint(path)
				if err != nil {
					return err
				}
				defer c.Close()
				if err := restorePart(t.Context(), c, models[rank], o, part); err != nil {
					return err
				}
				if _, err := o.Tensors(paramsOf(partPieces(models[rank].Params(), o, part))); err != nil {
					return err
				}
				if err := takePart(&snapshots[rank], models[rank], o, c.Position, part); err != nil {
					return err
				}
				return snapshots[rank].SavePart(t.Context(), dir)
			}()
		})
	}
	wait.Wait()
	require.NoError(t, errors.Join(errs...))
	require.NoError(t, snapshots[ranks-1].Commit(t.Context(), dir))
}

func requireSameDirectory(t *testing.T, want, got string) {
	t.Helper()
	files, err := os.ReadDir(want)
	require.NoError(t, err)
	others, err := os.ReadDir(got)
	require.NoError(t, err)
	require.Len(t, others, len(files))
	for _, f := range files {
		requireSameFile(t, filepath.Join(want, f.Name()), filepath.Join(got, f.Name()))
	}
}

// TestPartMemory: the snapshots of all parts together are no larger than that of the whole.
func TestPartMemory(t *testing.T) {
	r := runs()["moments in fp8"]
	model, optimizer := newRun(t, r.Config, r.Moments, 5)
	resume(t, model, optimizer, 0, 1)
	var whole Snapshot
	require.NoError(t, whole.Take(model, optimizer, Position{}))
	var sum int64
	for rank := range 4 {
		var s Snapshot
		require.NoError(t, takePart(&s, model, optimizer, Position{}, Partition{rank, 4}))
		sum += s.Bytes()
		require.InDelta(t, whole.Bytes()/4, s.Bytes(), float64(whole.Bytes())/10)
	}
	require.Equal(t, whole.Bytes(), sum)
}

// TestRanksStepByTheirParts: optimizers that have a part of the parameters each move them
// to the bits of one that has all.
func TestRanksStepByTheirParts(t *testing.T) {
	for _, format := range optim.MomentFormats() {
		model, one := newRun(t, small(), optim.Moments{Format: format, Block: 48}, 5)
		one.Clip = 0 // whose norm is of all gradients
		resume(t, model, one, 0, 1)
		twin, _ := newRun(t, small(), optim.Moments{}, 5)
		for i, p := range twin.Params() {
			copy(p.Value, model.Params()[i].Value)
			copy(p.Grad, model.Params()[i].Grad)
		}
		path := filepath.Join(t.TempDir(), "run")
		require.NoError(t, SaveCheckpoint(t.Context(), path, model, one, Position{}))
		_, err := one.Step(t.Context(), model.Params(), 1e-2)
		require.NoError(t, err)
		c, err := OpenCheckpoint(path)
		require.NoError(t, err)
		for rank := range 3 {
			o := &optim.AdamW{WeightDecay: one.WeightDecay, Moments: one.Moments}
			part := Partition{rank, 3}
			m, _ := newRun(t, small(), optim.Moments{}, 7)
			require.NoError(t, restorePart(t.Context(), c, m, o, part))
			_, err := o.Step(t.Context(), paramsOf(partPieces(twin.Params(), o, part)), 1e-2)
			require.NoError(t, err)
		}
		require.NoError(t, c.Close())
		for i, p := range twin.Params() {
			require.True(t, slices.Equal(model.Params()[i].Value, p.Value), "%v %s", format, p.Name)
		}
	}
}

// savedParts4 returns a run and the directory of its checkpoint in four parts.
func savedParts4(t *testing.T, root string, step int) (*nn.Llama, *optim.AdamW, string) {
	r := runs()["smooth delayed"]
	r.Moments.Format = optim.MomentsFP8
	model, optimizer := newRun(t, r.Config, r.Moments, 5)
	resume(t, model, optimizer, 0, step)
	var s Snapshot
	require.NoError(t, s.Take(model, optimizer, Position{Step: step}))
	d := Directory{Path: root, Ranks: 4, Keep: 9}
	require.NoError(t, d.Save(t.Context(), &s))
	return model, optimizer, filepath.Join(root, nameAfter(step))
}

// TestDamagedParts: whatever is wrong with a file is found, and named with it.
func TestDamagedParts(t *testing.T) {
	root := t.TempDir()
	model, optimizer, path := savedParts4(t, root, 1)
	_, _, other := savedParts4(t, root, 2)
	before := bitsOf(model, optimizer)
	part := partName(Partition{2, 4})
	edit := func(name string, change func([]byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			data, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), change(data), 0o666))
		}
	}
	flip := func(share float64) func([]byte) []byte {
		return func(b []byte) []byte { b[int(share*float64(len(b)-1))] ^= 4; return b }
	}
	replace := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte {
			var m struct {
				Checkpoint string
			}
			text := string(b)
			m.Checkpoint = text[strings.Index(text, `"checkpoint":`)+13 : len(text)-2]
			if !strings.Contains(m.Checkpoint, old) {
				t.Errorf("no %s in %s", old, m.Checkpoint)
			}
			m.Checkpoint = strings.Replace(m.Checkpoint, old, new, 1)
			return fmt.Appendf(nil, `{"checkpoint":%s,"crc32c":%q}`, m.Checkpoint, arrays.Checksum([]byte(m.Checkpoint)))
		}
	}
	for _, c := range []struct {
		says   string
		damage func(t *testing.T, dir string)
	}{
		{part + ": ", edit(part, flip(0.1))},
		{part, edit(part, flip(0.6))},
		{part, edit(part, flip(1))},
		{part + ": ", edit(part, func(b []byte) []byte { return b[:len(b)-1] })},
		{part + ": ", edit(part, func(b []byte) []byte { return nil })},
		{part + ": ", func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, part))) }},
		{part + ": it is not the part that was saved", func(t *testing.T, dir string) {
			data, err := os.ReadFile(filepath.Join(other, part))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, part), data, 0o666))
		}},
		{manifestName, func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, manifestName))) }},
		{manifestName, edit(manifestName, flip(0.3))},
		{manifestName, edit(manifestName, flip(0))},
		{manifestName, edit(manifestName, func(b []byte) []byte { return b[:len(b)/2] })},
		{"it names no parts", edit(manifestName, func(b []byte) []byte {
			text := string(b)
			return replace(text[strings.LastIndex(text, `,"parts":{"tensors"`):len(text)-3], "")(b)
		})},
		{"reads version 3", edit(manifestName, replace(`"version":3`, `"version":4`))},
		{"two tensors", edit(manifestName, replace(`"model.norm.weight"`, `"model.embed_tokens.weight"`))},
		{"no file can hold", edit(manifestName, replace(`"shape":[32]`, `"shape":[-32]`))},
		{"part-", edit(manifestName, replace(`"shape":[32]`, `"shape":[31]`))},
		{"part-", edit(manifestName, replace(`"dtype":"F32"`, `"dtype":"F16"`))},
		{"part-", edit(manifestName, replace(`"model.norm.weight"`, `"model.norm.height"`))},
		{"part-00000-of-00003", edit(manifestName, func(b []byte) []byte {
			text := string(b)
			last := text[strings.LastIndex(text, `,{"bytes"`) : len(text)-5]
			return replace(last, "")(b)
		})},
	} {
		dir := filepath.Join(t.TempDir(), "copy")
		require.NoError(t, os.CopyFS(dir, os.DirFS(path)))
		c.damage(t, dir)
		_, err := LoadCheckpoint(t.Context(), dir, model, optimizer)
		require.ErrorContains(t, err, c.says)
		require.Truef(t, isUnusable(err), "%v", err)
		require.True(t, reflect.DeepEqual(before, bitsOf(model, optimizer)), c.says)
	}
	_, err := OpenCheckpoint(filepath.Join(path, part))
	require.ErrorContains(t, err, "it is a part of a checkpoint: open the directory that it is in")
	_, err = LoadCheckpoint(t.Context(), path, model, optimizer)
	require.NoError(t, err)
}

// TestCommitRefuses parts that do not belong together, and a directory that is taken.
func TestCommitRefuses(t *testing.T) {
	r := runs()["moments in bf16"]
	model, optimizer := newRun(t, r.Config, r.Moments, 5)
	resume(t, model, optimizer, 0, 1)
	dir := filepath.Join(t.TempDir(), "new", "run")
	take := func(rank, step int) *Snapshot {
		var s Snapshot
		require.NoError(t, takePart(&s, model, optimizer, Position{Step: step}, Partition{rank, 2}))
		return &s
	}
	first, second, later := take(0, 1), take(1, 1), take(1, 2)
	require.NoError(t, first.SavePart(t.Context(), dir))
	err := first.Commit(t.Context(), dir)
	require.ErrorIs(t, err, ErrCheckpoint)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "part-00001-of-00002.safetensors: ")
	require.NoError(t, later.SavePart(t.Context(), dir))
	err = first.Commit(t.Context(), dir)
	require.ErrorIs(t, err, ErrMismatch)
	require.ErrorContains(t, err, "part-00001-of-00002.safetensors is of another step or another run than rank 0's")
	require.NoError(t, second.SavePart(t.Context(), dir))
	_, err = OpenCheckpoint(dir)
	require.ErrorIs(t, err, fs.ErrNotExist, "nothing is a checkpoint without a manifest")
	require.NoError(t, second.Commit(t.Context(), dir))
	require.ErrorIs(t, first.SavePart(t.Context(), dir), ErrInput)
	_, err = LoadCheckpoint(t.Context(), dir, model, optimizer)
	require.NoError(t, err)
}
