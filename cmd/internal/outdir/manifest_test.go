package outdir

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestManifestsThatAreRefused(t *testing.T) {
	for data, says := range map[string]string{
		``:                         "it is no manifest of a run",
		`[]`:                       "it is no manifest of a run",
		`{"kind":"train"}`:         "it has version 0: this octavo reads version 1",
		`{"version":2,"files":[]}`: "it has version 2: this octavo reads version 1",
		`{"version":1}`:            `it has no "kind"`,
		`{"version":1,"kind":"train","files":["../x"]}`:            `"../x" is no name of a file of a run`,
		`{"version":1,"kind":"train","files":["/etc/passwd"]}`:     "is no name",
		`{"version":1,"kind":"train","files":["a\\b"]}`:            "is no name",
		`{"version":1,"kind":"train","files":[".."]}`:              "is no name",
		`{"version":1,"kind":"train","files":[""]}`:                "is no name",
		`{"version":1,"kind":"train","files":[".octavo-lock"]}`:    "is no name",
		`{"version":1,"kind":"train","files":["octavo-run.json"]}`: "is no name",
		`{"version":1,"kind":"train","files":["a\u001b[2J"]}`:      "is no name",
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, ManifestName), []byte(data), 0o666))
		_, err := Read(dir)
		require.ErrorContains(t, err, ManifestName+": ", data)
		require.ErrorContains(t, err, says, data)
		_, err = Create(dir, Options{Overwrite: true})
		require.ErrorContains(t, err, says, "nothing is overwritten by a list that is not understood")
		require.FileExists(t, filepath.Join(dir, ManifestName))
	}
	dir := t.TempDir()
	_, err := Read(dir)
	require.EqualError(t, err, dir+" holds no run: there is no octavo-run.json")
	_, err = Read(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotErrorIs(t, err, ErrNoRun)
	large := `{"version":1,"kind":"` + strings.Repeat("x", maxManifest) + `"}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, ManifestName), []byte(large), 0o666))
	_, err = Read(dir)
	require.ErrorContains(t, err, "at most")
}

func TestNamesThatAreRefused(t *testing.T) {
	r, err := Create(t.TempDir(), Options{})
	require.NoError(t, err)
	defer r.Abort()
	for _, name := range []string{"", ".", "..", "a/b", "/a", `a\b`, ManifestName, ".hidden", "a\n"} {
		require.ErrorContains(t, r.Add(name, text("")), "is no name of a file of a run")
	}
}

// FuzzManifest: whatever is accepted names files of the directory itself, and is
// written as what it was read as.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"version":1,"kind":"train","command":"octavo train","machine":"m","files":["a.csv","../b"]}`))
	f.Add([]byte(`{"version":1,"kind":"lab","files":["NUL",".","a:b"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseManifest(data)
		if err != nil {
			return
		}
		for _, name := range m.Files {
			require.Equal(t, "x", filepath.Dir(filepath.Join("x", name)))
			require.NotContains(t, []string{ManifestName, lockName, partialName, commitName}, name)
		}
		var text bytes.Buffer
		require.NoError(t, m.write(&text))
		again, err := parseManifest(text.Bytes())
		require.NoError(t, err)
		require.Equal(t, m, again)
	})
}
