package outdir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// contents returns all files below a directory but for manifests, whose text is "run",
// and empty directories with a / behind their names.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		name := filepath.ToSlash(path[len(dir):])
		if d.IsDir() {
			if entries, _ := os.ReadDir(path); len(entries) == 0 {
				found[name+"/"] = ""
			}
			return nil
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		if d.Name() == ManifestName {
			data = []byte("run")
		}
		found[name] = string(data)
		return nil
	}))
	return found
}

// write does a whole run with files of the given texts.
func write(t *testing.T, dir string, o Options, files map[string]string) {
	t.Helper()
	r, err := Create(dir, o)
	require.NoError(t, err)
	defer r.Abort()
	for name, s := range files {
		require.NoError(t, r.Add(name, text(s)))
	}
	require.NoError(t, r.Commit(Manifest{Kind: "train", Command: "octavo train", Machine: "a machine"}))
}

func TestFilesAppearTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "out")
	r, err := Create(dir, Options{Files: []string{"a.csv"}})
	require.NoError(t, err)
	require.Equal(t, dir, r.Dir())
	require.NoError(t, r.Add("b.csv", text("old b")))
	require.NoError(t, r.Add("a.csv", text("a")))
	require.NoError(t, r.Add("b.csv", text("b")))
	for _, name := range []string{"a.csv", "b.csv", ManifestName} {
		require.NoFileExists(t, filepath.Join(dir, name))
	}
	_, err = Read(dir)
	require.ErrorIs(t, err, ErrNoRun)
	require.NoError(t, r.Commit(Manifest{Kind: "train", Command: "octavo train --seed 1", Machine: "a machine"}))
	r.Abort() // in vain
	require.Equal(t, map[string]string{"/a.csv": "a", "/b.csv": "b", "/" + ManifestName: "run"}, contents(t, dir))
	m, err := Read(dir)
	require.NoError(t, err)
	require.Equal(t, Manifest{
		Version: 1, Kind: "train", Command: "octavo train --seed 1", Machine: "a machine", Files: []string{"b.csv", "a.csv"},
	}, m)
	require.Error(t, r.Commit(Manifest{}), "it has ended")
}

func requireStaged(t *testing.T, r *Run) {
	t.Helper()
	require.FileExists(t, filepath.Join(r.Dir(), partialName, "a"))
}

func requireNothingStaged(t *testing.T, r *Run) {
	t.Helper()
	require.NoDirExists(t, filepath.Join(r.Dir(), partialName))
}

// TestPausedRun: what was staged is there for a run that goes on, and for no other.
func TestPausedRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	r, err := Create(dir, Options{Resume: true})
	require.NoError(t, err)
	requireNothingStaged(t, r)
	stage, err := r.Stage()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(stage, "a"), []byte("a"), 0o666))
	requireStaged(t, r)
	require.ErrorContains(t, r.Adopt("b"), "no such file")
	require.ErrorContains(t, r.Adopt("../a"), "is no name of a file of a run")
	r.Pause()
	r.Abort() // in vain
	require.Equal(t, map[string]string{"/" + partialName + "/a": "a"}, contents(t, dir))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "b"), nil, 0o666))
	_, err = Create(dir, Options{Resume: true, Files: []string{"b"}})
	require.ErrorContains(t, err, "move it away")
	require.NoError(t, os.Remove(filepath.Join(dir, "b")))

	r, err = Create(dir, Options{Resume: true})
	require.NoError(t, err)
	requireStaged(t, r)
	require.NoError(t, r.Add("b", text("b")))
	require.NoError(t, r.Adopt("a"))
	sums := map[string]string{"a": "01234567"}
	require.NoError(t, r.Commit(Manifest{Kind: "convert", Sums: sums}))
	require.Equal(t, map[string]string{"/a": "a", "/b": "b", "/" + ManifestName: "run"}, contents(t, dir))
	m, err := Read(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"b", "a"}, m.Files)
	require.Equal(t, sums, m.Sums)

	for _, o := range []Options{{Overwrite: true, Resume: true}, {Overwrite: true}} {
		r, err = Create(dir, o)
		require.NoError(t, err)
		requireNothingStaged(t, r)
		_, err = r.Stage()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, partialName, "c"), nil, 0o666))
		r.Pause()
	}
	r, err = Create(dir, Options{Overwrite: true})
	require.NoError(t, err)
	requireNothingStaged(t, r)
	r.Pause()
	require.Equal(t, map[string]string{"/a": "a", "/b": "b", "/" + ManifestName: "run"}, contents(t, dir))
}

// TestAbortLeavesNothing: no file, no lock, and no directory that was not there.
func TestAbortLeavesNothing(t *testing.T) {
	parent := t.TempDir()
	r, err := Create(filepath.Join(parent, "x", "y"), Options{})
	require.NoError(t, err)
	require.NoError(t, r.Add("a", text("a")))
	failed := errors.New("failed")
	require.ErrorIs(t, r.Add("b", func(io.Writer) error { return failed }), failed)
	r.Abort()
	require.Equal(t, map[string]string{"/": ""}, contents(t, parent))

	require.NoError(t, os.WriteFile(filepath.Join(parent, "mine"), []byte("mine"), 0o666))
	r, err = Create(parent, Options{})
	require.NoError(t, err)
	require.NoError(t, r.Add("a", text("a")))
	r.Abort()
	require.Equal(t, map[string]string{"/mine": "mine"}, contents(t, parent))
}

// TestOverwrite replaces the files of a run, and those only.
func TestOverwrite(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, Options{}, map[string]string{"a": "a", "b": "b", "gone": "old"})
	for _, mine := range []string{"mine", "also mine"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, mine), []byte(mine), 0o666))
	}
	before := contents(t, dir)
	_, err := Create(dir, Options{})
	require.ErrorIs(t, err, ErrHasRun)
	require.EqualError(t, err, dir+": it holds a run already: name another directory with -o, or replace that run with --overwrite")
	require.Equal(t, before, contents(t, dir))

	r, err := Create(dir, Options{Overwrite: true})
	require.NoError(t, err)
	require.NoError(t, r.Add("a", text("new a")))
	require.ErrorContains(t, r.Add("mine", text("")), "mine is there and is of no run: move it away, or name another directory with -o")
	r.Abort()
	require.Equal(t, before, contents(t, dir), "the old run is as it was")

	write(t, dir, Options{Overwrite: true}, map[string]string{"a": "new a", "c": "c"})
	require.Equal(t, map[string]string{"/a": "new a", "/c": "c", "/mine": "mine", "/also mine": "also mine", "/" + ManifestName: "run"}, contents(t, dir))
	_, err = Create(dir, Options{Overwrite: true, Files: []string{"c", "also mine"}})
	require.ErrorContains(t, err, "also mine is there and is of no run", "known before anything was computed")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d"), 0o777))
	_, err = Create(dir, Options{Overwrite: true, Files: []string{"d"}})
	require.ErrorContains(t, err, "d is a directory, but the run has a file of that name")
}

// TestForeignFile: a file in a directory without a run is nobody's to replace.
func TestForeignFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "index.html")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o666))
	for _, overwrite := range []bool{false, true} {
		_, err := Create(dir, Options{Overwrite: overwrite, Files: []string{"index.html"}})
		require.EqualError(t, err, path+" is there and is of no run: move it away, or name another directory with -o")
		r, err := Create(dir, Options{Overwrite: overwrite})
		require.NoError(t, err)
		require.ErrorContains(t, r.Add("index.html", text("")), "is of no run")
		r.Abort()
	}
	require.Equal(t, map[string]string{"/index.html": "mine"}, contents(t, dir))
}

// TestLockIsOfThePath: a lock of a file that was removed keeps nobody else out.
func TestLockIsOfThePath(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, lockName)
	l, err := lock(dir)
	require.NoError(t, err)
	defer l.Close()
	require.True(t, isAt(l, path))
	if runtime.GOOS == "windows" {
		t.Skip("Windows removes no file that is open")
	}
	require.NoError(t, os.Remove(path))
	require.False(t, isAt(l, path))
	other, err := lock(dir)
	require.NoError(t, err)
	require.False(t, isAt(l, path))
	require.True(t, isAt(other, path))
	unlock(other)
}

// TestCutOff stops a commit at each of its steps, as a process that is killed does. The
// next run finds the complete one.
func TestCutOff(t *testing.T) {
	const steps = 7
	want := map[string]string{"/a": "new a", "/c": "c", "/mine": "mine", "/" + ManifestName: "run"}
	for cut := range steps {
		dir := t.TempDir()
		write(t, dir, Options{}, map[string]string{"a": "a", "b": "b"})
		require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), []byte("mine"), 0o666))
		r, err := Create(dir, Options{Overwrite: true})
		require.NoError(t, err)
		require.NoError(t, r.Add("a", text("new a")))
		require.NoError(t, r.Add("c", text("c")))
		require.NoError(t, r.stage(ManifestName, Manifest{Version: 1, Kind: "lab", Files: []string{"a", "c"}}.write))
		commit := filepath.Join(dir, commitName)
		for i, do := range []func() error{
			func() error { return os.Rename(filepath.Join(dir, partialName), commit) },
			func() error {
				return os.Rename(filepath.Join(dir, ManifestName), filepath.Join(commit, replacedName))
			},
			func() error { return os.Remove(filepath.Join(dir, "b")) },
			func() error { return os.Remove(filepath.Join(dir, "a")) },
			func() error { return os.Rename(filepath.Join(commit, "a"), filepath.Join(dir, "a")) },
			func() error { return os.Rename(filepath.Join(commit, "c"), filepath.Join(dir, "c")) },
			func() error {
				return os.Rename(filepath.Join(commit, ManifestName), filepath.Join(dir, ManifestName))
			},
		}[:cut+1] {
			require.NoError(t, do(), i)
		}
		require.NoError(t, r.lock.Close())

		require.False(t, isFree(dir))
		again, err := Create(dir, Options{Overwrite: true})
		require.NoError(t, err)
		again.Abort()
		require.Equal(t, want, contents(t, dir), "cut off after step %d", cut)
		m, err := Read(dir)
		require.NoError(t, err)
		require.Equal(t, "lab", m.Kind)
	}
}

// TestOneRunInADirectory follows a run on its way into its place through the eyes of who reads
// files without asking for a manifest: at no time there are files of two runs, and the last
// files of each are there only with all others.
func TestOneRunInADirectory(t *testing.T) {
	dir := t.TempDir()
	order := []string{"shard-1", "shard-2", "config"}
	begin := func(run string) *Run {
		r, err := Create(dir, Options{Overwrite: true})
		require.NoError(t, err)
		for _, name := range order {
			require.NoError(t, r.Add(name, text(run)))
		}
		return r
	}
	require.NoError(t, begin("old").Commit(Manifest{Kind: "convert"}))
	r := begin("new")
	require.NoError(t, r.stage(ManifestName, Manifest{Version: 1, Kind: "convert", Files: order}.write))
	commit := filepath.Join(dir, commitName)
	require.NoError(t, os.Rename(filepath.Join(dir, partialName), commit))
	seen := func() (runs []string) {
		for _, name := range order {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				data = []byte("none")
			}
			runs = append(runs, string(data))
		}
		return runs
	}
	want := []string{"none", "none", "none"}
	for i, name := range order {
		_ = os.Remove(filepath.Join(dir, name))
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name, "in the way"), 0o777))
		require.Error(t, finish(dir))
		require.Equal(t, want, seen())
		require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
		want[i] = "new"
	}
	require.NoError(t, finish(dir))
	require.Equal(t, want, seen())
	r.Abort()
}

// TestKilledBefore: of files that were not complete nothing is left.
func TestKilledBefore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	r, err := Create(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, r.Add("a", text("a")))
	require.NoError(t, r.lock.Close()) // as the system does
	require.True(t, isFree(dir))
	r, err = Next(dir)
	require.NoError(t, err)
	require.Equal(t, dir, r.Dir())
	require.NoDirExists(t, filepath.Join(dir, partialName))
	r.Abort()
	require.DirExists(t, dir, "it was there before")
}

func TestOneRunAtATime(t *testing.T) {
	dir := t.TempDir()
	r, err := Create(dir, Options{})
	require.NoError(t, err)
	_, err = Create(dir, Options{Overwrite: true})
	require.EqualError(t, err, dir+": another octavo is writing into it: name another directory with -o")
	require.NoError(t, r.Add("a", text("a")), "it is not disturbed")
	require.NoError(t, r.Commit(Manifest{Kind: "lab"}))
	r, err = Create(dir, Options{Overwrite: true})
	require.NoError(t, err)
	r.Abort()
}

func TestNext(t *testing.T) {
	base := filepath.Join(t.TempDir(), "octavo-train")
	next := func(want string) {
		t.Helper()
		r, err := Next(base)
		require.NoError(t, err)
		require.Equal(t, want, r.Dir())
		require.NoError(t, r.Commit(Manifest{Kind: "train"}))
	}
	require.NoError(t, os.Mkdir(base, 0o777))
	next(base) // which is empty
	require.NoError(t, os.WriteFile(base+"-2", nil, 0o666))
	require.NoError(t, os.Mkdir(base+"-3", 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(base+"-3", "mine"), nil, 0o666))
	next(base + "-4")
	require.NoError(t, os.RemoveAll(base))
	next(base)
	next(base + "-5")
	_, err := Next(filepath.Join(base+"-2", "x"))
	require.ErrorContains(t, err, "name another directory with -o")
}

// TestNextIsTooLate: others have got into a directory since it was looked at.
func TestNextIsTooLate(t *testing.T) {
	dir := t.TempDir()
	first, err := Create(dir, Options{})
	require.NoError(t, err)
	for _, do := range []func(){
		func() {}, // it is at work
		func() { require.NoError(t, first.Commit(Manifest{Kind: "train"})) },
		func() { // it was killed after a checkpoint
			require.NoError(t, os.Remove(filepath.Join(dir, ManifestName)))
			require.NoError(t, os.Mkdir(filepath.Join(dir, "checkpoint-0000001"), 0o777))
		},
	} {
		do()
		r, err := createFree(dir)
		require.NoError(t, err)
		require.Nil(t, r)
	}
	require.Equal(t, map[string]string{"/checkpoint-0000001/": ""}, contents(t, dir))
}

// TestNextAtOnce: each of many has a directory of its own.
func TestNextAtOnce(t *testing.T) {
	base := filepath.Join(t.TempDir(), "out")
	const n = 20
	runs := make([]*Run, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			r, err := Next(base)
			if err != nil {
				t.Error(err)
				return
			}
			runs[i] = r
			if i%3 == 0 { // some give theirs back while others look for one
				r.Abort()
			}
		})
	}
	group.Wait()
	require.False(t, t.Failed())
	var dirs []string
	for i, r := range runs {
		if i%3 != 0 {
			require.NoError(t, r.Add("who", text("x")))
			require.NoError(t, r.Commit(Manifest{Kind: "train"}))
			dirs = append(dirs, r.Dir())
		}
	}
	slices.Sort(dirs)
	require.Len(t, slices.Compact(dirs), n-(n+2)/3)
}

func TestLinkedDirectory(t *testing.T) {
	parent := t.TempDir()
	there, link := filepath.Join(parent, "there"), filepath.Join(parent, "link")
	require.NoError(t, os.Mkdir(there, 0o777))
	if err := os.Symlink("there", link); err != nil {
		testutil.Lacking(t, "%v", err)
	}
	write(t, link, Options{}, map[string]string{"a": "a"})
	require.Equal(t, map[string]string{"/a": "a", "/" + ManifestName: "run"}, contents(t, there))
	_, err := Create(there, Options{})
	require.ErrorIs(t, err, ErrHasRun)
	stat, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, stat.Mode()&os.ModeSymlink)

	require.NoError(t, os.Symlink("nowhere", filepath.Join(parent, "dangling")))
	_, err = Create(filepath.Join(parent, "dangling"), Options{})
	require.ErrorContains(t, err, "name another directory with -o")
	r, err := Next(filepath.Join(parent, "dangling"))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(parent, "dangling-2"), r.Dir())
	r.Abort()

	require.NoError(t, os.WriteFile(filepath.Join(parent, "other"), []byte("other"), 0o666))
	require.NoError(t, os.Remove(filepath.Join(there, "a")))
	require.NoError(t, os.Symlink("../other", filepath.Join(there, "a")))
	write(t, there, Options{Overwrite: true}, map[string]string{"a": "new"})
	data, err := os.ReadFile(filepath.Join(parent, "other"))
	require.NoError(t, err)
	require.Equal(t, "other", string(data), "what a link leads to is not the run's")
}

func TestDirectoriesThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	for _, dir := range []string{file, filepath.Join(file, "x"), ""} {
		_, err := Create(dir, Options{})
		require.ErrorContains(t, err, "with -o", "%q", dir)
	}
}

func TestReadOnlyDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are of another kind")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() { os.Chmod(dir, 0o777) })
	var errCreate, errNext error
	withoutRights(t, func() {
		_, errCreate = Create(dir, Options{})
		_, errNext = Next(filepath.Join(dir, "out"))
	})
	require.EqualError(t, errCreate, dir+": permission denied: name another directory with -o")
	require.EqualError(t, errNext, "mkdir "+filepath.Join(dir, "out")+": permission denied: name another directory with -o")
}
