package runs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/scaling"
)

func TestNames(t *testing.T) {
	for _, c := range []struct{ paths, want []string }{
		{nil, []string{}},
		{[]string{"a/b"}, []string{"b"}},
		{[]string{"a/b", "a/c"}, []string{"b", "c"}},
		{[]string{"a/run", "b/run"}, []string{"a", "b"}},
		{[]string{"x/a/run", "y/a/run", "x/b/run"}, []string{"x/a", "y/a", "x/b"}},
		{[]string{"a", "a/b"}, []string{"a", "a/b"}},
		{[]string{"a/b", "c"}, []string{"a/b", "c"}},
		{[]string{"./a/", "b/../c"}, []string{"a", "c"}},
	} {
		require.Equal(t, c.want, names(c.paths), "%q", c.paths)
	}
	require.Len(t, names([]string{".", "/"}), 2)
	require.Equal(t, []string{"/"}, names([]string{"/"}))
}

func TestNatural(t *testing.T) {
	order := []string{"a", "a-2", "a-10", "a-10-b", "a10", "b", "b01", "b1", "b2"}
	for i := range order {
		for j := range order {
			require.Equal(t, i < j, natural(order[i], order[j]) < 0, "%s, %s", order[i], order[j])
			require.Equal(t, i == j, natural(order[i], order[j]) == 0, "%s, %s", order[i], order[j])
		}
	}
}

// TestFind has a directory of runs, one in it named again, and a single run elsewhere.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"octavo-train", "octavo-train-10", "octavo-train-2"} {
		writeTrain(t, filepath.Join(dir, name), trained(3, 3, 1, scaling.TEBlock))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o777))
	write(t, filepath.Join(dir, "file"), "text")
	writeTrain(t, filepath.Join(dir, "octavo-train", "below"), trained(3, 3, 1, scaling.TEBlock)) // in a run: not looked at
	s := read(t, dir, filepath.Join(dir, "empty", "..", "octavo-train-2"))
	var got []string
	for _, r := range s.runs() {
		got = append(got, r.Name)
	}
	require.Equal(t, []string{"octavo-train", "octavo-train-2", "octavo-train-10"}, got)
	require.Len(t, read(t, filepath.Join(dir, "octavo-train")).Train, 1)
}

func TestFindNothing(t *testing.T) {
	dir := t.TempDir()
	fails := func(path, says string) {
		t.Helper()
		_, err := Read(t.Context(), []string{path}, nil)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, says)
	}
	fails(dir, "holds no run, nor does a directory in it: there is no octavo-run.json: name a directory that octavo train or octavo lab wrote")
	fails(filepath.Join(dir, "absent"), "no such file or directory")
	write(t, filepath.Join(dir, "old", "curves.csv"), "step\n")
	fails(filepath.Join(dir, "old"), "has a curves.csv, but no octavo-run.json: the run was not finished, or is one of octavo before 0.1.0: run it again")
	fails(filepath.Join(dir, "old", "curves.csv"), "is a file: name the directory of a run")
	write(t, filepath.Join(dir, "broken", outdir.ManifestName), "{")
	fails(filepath.Join(dir, "broken"), "octavo-run.json: it is no manifest of a run")
	commit(t, filepath.Join(dir, "other"), "bench", nil)
	fails(filepath.Join(dir, "other"), `the run is one of "octavo bench": want one of octavo train or octavo lab`)
	_, err := Read(t.Context(), []string{dir}, nil)
	require.ErrorContains(t, err, filepath.Join(dir, "broken"), "a run that is broken is not left out")
}
