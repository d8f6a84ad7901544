package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

const first = `
experiment = "example"
declared = "2026-11-23"

[[hypothesis]]
name = "gap"
margin = 0.2

[[control]]
name = "coarse"
bound = 1
`

const said = `
[[change]]
date = "2026-11-24"
of = ["gap"]
what = "margin"
why = "a slip"
`

// repository commits versions of a declaration, one after another; an empty one removes it.
func repository(t *testing.T, versions ...string) (dir string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		testutil.Lacking(t, "there is no git")
	}
	dir = t.TempDir()
	run := func(arguments ...string) {
		t.Helper()
		_, err := git(dir, append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, arguments...)...)
		require.NoError(t, err)
	}
	run("init", "-q")
	path := filepath.Join(dir, "experiments", "example", fileName)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
	for _, v := range versions {
		if v == "" {
			require.NoError(t, os.Remove(path))
		} else {
			require.NoError(t, os.WriteFile(path, []byte(v), 0o666))
		}
		run("add", "-A")
		run("commit", "-q", "--allow-empty", "-m", "x")
	}
	return dir
}

func replaced(text, old, new string) string { return strings.Replace(text, old, new, 1) }

// TestSilent has histories that say what they change, and such that do not.
func TestSilent(t *testing.T) {
	wider := replaced(first, "0.2", "0.3")
	for name, c := range map[string]struct {
		versions []string
		faults   []string // how they begin
	}{
		"one version":              {[]string{first}, nil},
		"a change that is said":    {[]string{first, wider + said}, nil},
		"said afterwards":          {[]string{first, wider, wider + said}, nil},
		"another order and spaces": {[]string{first, replaced(first, "name = \"gap\"\nmargin = 0.2", "margin=0.20\n# a comment\nname = 'gap'")}, nil},
		"a change in silence":      {[]string{first, wider}, []string{"gap changed in commit "}},
		"said of another":          {[]string{first, wider + replaced(said, "gap", "coarse")}, []string{"gap changed in commit "}},
		"two, and one is said":     {[]string{first, wider + said, replaced(wider, "0.3", "0.4") + said}, []string{"gap changed in commit "}},
		"there and back":           {[]string{first, wider, first}, []string{"gap changed in ", "gap changed in "}},
		"a control":                {[]string{first, replaced(first, "bound = 1", "bound = 2")}, []string{"coarse changed in "}},
		"one that is removed":      {[]string{first, first[:strings.Index(first, "[[control")]}, []string{"coarse changed in "}},
		"one that is added":        {[]string{first, first + "[[hypothesis]]\nname = 'new'\n"}, []string{"new changed in "}},
		"a control no more":        {[]string{first, replaced(first, "[[control", "[[hypothesis")}, []string{"coarse changed in "}},
		"the date":                 {[]string{first, replaced(first, "11-23", "11-22")}, []string{"declared changed in "}},
		"the change is gone":       {[]string{first, wider + said, wider}, []string{"gap changed in ", "the change of gap is gone or altered in "}},
	} {
		var versions []version
		for i, text := range c.versions {
			v, err := parse(fmt.Sprintf("commit %d", i), text)
			require.NoError(t, err, name)
			versions = append(versions, v)
		}
		faults := silent(versions)
		require.Len(t, faults, len(c.faults), "%s: %q", name, faults)
		for _, want := range c.faults {
			require.Contains(t, strings.Join(faults, "\n"), want, name)
		}
	}
	require.Empty(t, silent(nil))
}

// TestCheck reads histories from git.
func TestCheck(t *testing.T) {
	wider := replaced(first, "0.2", "0.3")
	faults, files, err := check(repository(t, first, wider+said))
	require.NoError(t, err)
	require.Equal(t, 1, files)
	require.Empty(t, faults)
	faults, _, err = check(repository(t, first, "", wider))
	require.NoError(t, err)
	require.Len(t, faults, 1)
	require.Regexp(t, `^experiments/example/declaration.toml: gap changed in commit [0-9a-f]{12}, and no \[\[change\]\] names it$`, faults[0])
}

// TestMoved: a file that is moved as it is keeps its history, also of what was before.
func TestMoved(t *testing.T) {
	dir := repository(t, first, replaced(first, "0.2", "0.3"))
	for _, arguments := range [][]string{
		{"mv", "experiments", "elsewhere"},
		{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "x"},
	} {
		_, err := git(dir, arguments...)
		require.NoError(t, err)
	}
	faults, files, err := check(dir)
	require.NoError(t, err)
	require.Equal(t, 1, files)
	require.Len(t, faults, 1)
	require.Regexp(t, `^elsewhere/example/declaration.toml: gap changed in commit `, faults[0])
}

// TestWorkingTree: what is not committed yet is judged too.
func TestWorkingTree(t *testing.T) {
	dir := repository(t, first)
	path := filepath.Join(dir, "experiments", "example", fileName)
	require.NoError(t, os.WriteFile(path, []byte(replaced(first, "0.2", "0.3")), 0o666))
	faults, _, err := check(filepath.Dir(path))
	require.NoError(t, err)
	require.Equal(t, []string{"experiments/example/declaration.toml: gap changed in the working tree, and no [[change]] names it"}, faults)
	require.NoError(t, os.WriteFile(path, []byte("experiment"), 0o666))
	_, _, err = check(dir)
	require.ErrorContains(t, err, "experiments/example/declaration.toml: ")
}

// TestShallow: of a shallow clone the history is fetched first. Where that is impossible
// nothing is judged, which is said, and is no failure; nor is it one where CI is "true".
func TestShallow(t *testing.T) {
	t.Setenv("CI", "true")
	dir, folder := repository(t, first, replaced(first, "0.2", "0.3")), t.TempDir()
	clone := func(name, of string) (path string) {
		t.Helper()
		_, err := git(folder, "clone", "-q", "--depth", "1", "file://"+of, name)
		require.NoError(t, err)
		return filepath.Join(folder, name)
	}
	whole, cut, ofCut := clone("whole", dir), clone("cut", dir), ""
	ofCut = clone("of-cut", cut)

	var stdout, stderr strings.Builder
	require.Equal(t, 1, run(whole, &stdout, &stderr))
	require.Contains(t, stdout.String(), "gap changed in commit ")
	require.Empty(t, stderr.String())

	_, err := git(cut, "remote", "set-url", "origin", "file://"+filepath.Join(folder, "none"))
	require.NoError(t, err)
	for _, path := range []string{cut, ofCut} {
		stdout.Reset()
		stderr.Reset()
		require.Zero(t, run(path, &stdout, &stderr), path)
		require.Empty(t, stdout.String())
		require.Contains(t, stderr.String(), "WARNING: THE HISTORY OF THE DECLARATIONS WAS NOT JUDGED: ")
	}
	stderr.Reset()
	require.Equal(t, 1, run(folder, &stdout, &stderr), "no repository")
	require.Contains(t, stderr.String(), "declared: git rev-parse: ")
}
