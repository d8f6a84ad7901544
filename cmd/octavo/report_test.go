package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// threeRuns does two short runs of train, of different profiles, and one of lab, in a
// directory.
func threeRuns(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("All work and no play makes a dull text. ", 4000)), 0o666))
	for name, profile := range map[string]string{"a": "te-block", "b": "te-current"} {
		succeed(t, "train", "--text", text, "-o", filepath.Join(dir, name), "--profile", profile, "--steps", "3",
			"--batch", "1", "--context", "8", "--dim", "8", "--layers", "1", "--heads", "1", "--hidden", "16")
	}
	succeed(t, "lab", "accumulation", "--short", "--text", text, "-o", filepath.Join(dir, "c"))
	return dir
}

func TestReport(t *testing.T) {
	dir := threeRuns(t)
	page := filepath.Join(dir, "page.html")
	text := succeed(t, "report", dir, "-o", page)
	for _, want := range []string{
		"train  steps    FP32     FP8", "\na          3  ", "\nb          3  ", "what differs  profile\na             te-block\nb             te-current\n",
		"lab  experiment    goals met  open  caught  length  seed", "c    accumulation", "  short      1  ", "Curves and tables: " + page + "\n",
	} {
		require.Contains(t, text, want)
	}
	for line := range strings.Lines(text) {
		if !strings.Contains(line, page) {
			require.LessOrEqual(t, len([]rune(line)), 81, line)
		}
	}
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, want := range []string{`href="a/index.html"`, `href="c/accumulation.html"`, "octavo report " + dir + " -o " + page, "<mark>te-current</mark>"} {
		require.True(t, strings.Contains(string(html), want), want)
	}

	b, a := filepath.Join(dir, "b"), filepath.Join(dir, "a")
	given := succeed(t, "report", b, a)
	require.Less(t, strings.Index(given, "\nb "), strings.Index(given, "\na "))
	sorted := succeed(t, "report", b, a, "--sort", "name")
	require.Less(t, strings.Index(sorted, "\na "), strings.Index(sorted, "\nb "))
	require.NotContains(t, sorted, "Curves and tables")
}

func TestReportJSON(t *testing.T) {
	dir := threeRuns(t)
	var got struct {
		Differences []string
		Train       []struct{ Name string }
		Lab         []struct {
			Experiments []struct {
				Name   string
				Length string
				Goals  []any
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "report", dir, "--json")), &got))
	require.Equal(t, []string{"profile"}, got.Differences)
	require.Len(t, got.Train, 2)
	require.Equal(t, "accumulation", got.Lab[0].Experiments[0].Name)
	require.Equal(t, "short", got.Lab[0].Experiments[0].Length)
	require.NotEmpty(t, got.Lab[0].Experiments[0].Goals)
}

// TestReportRefuses checks that nothing is written where a run is not whole, and that no
// file of a run is written over.
func TestReportRefuses(t *testing.T) {
	fail(t, 2, "want directories of runs, there are none", "report")
	fail(t, 2, "unknown flag: --html: the page is what -o writes", "report", ".", "--html", "x.html")
	fail(t, 2, "want given or name or", "report", ".", "--sort", "size")
	dir := threeRuns(t)
	page := filepath.Join(dir, "page.html")
	own := filepath.Join(dir, "a", "index.html")
	before, err := os.ReadFile(own)
	require.NoError(t, err)
	fail(t, 2, own+" is a file of one of the runs: name another one with -o", "report", dir, "-o", own)
	link := filepath.Join(dir, "link")
	if os.Symlink(own, link) == nil {
		fail(t, 2, link+" is a file of one of the runs", "report", dir, "-o", link)
	}
	after, err := os.ReadFile(own)
	require.NoError(t, err)
	require.Equal(t, before, after)

	curves := filepath.Join(dir, "b", "curves.csv")
	require.NoError(t, os.WriteFile(curves, []byte("step\n"), 0o666))
	fail(t, 1, curves+": it has no column fp32_loss", "report", dir, "-o", page)
	require.NoFileExists(t, page)
	fail(t, 1, filepath.Join(dir, "absent"), "report", dir+"/a", filepath.Join(dir, "absent"))
	fail(t, 1, "name another file with -o", "report", filepath.Join(dir, "a"), "-o", filepath.Join(dir, "absent", "page.html"))
}
