package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/lab/experiments"
)

// labText writes a text that is long enough for the short experiments.
func labText(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("round and round the rugged rock. ", 600)), 0o644))
	return path
}

func TestLabWritesPageAndTables(t *testing.T) {
	out := filepath.Join(t.TempDir(), "new", "out")
	stdout := succeed(t, "lab", "accumulation", "--short", "--seed", "5", "--text", labText(t), "-o", out)
	require.Contains(t, stdout, "\n            largest-error: ")
	requireShortAndNarrow(t, stdout)
	require.Contains(t, stdout, filepath.Join(out, "accumulation.html"))
	page, err := os.ReadFile(filepath.Join(out, "accumulation.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "octavo lab accumulation --seed 5 --text ")
	require.Contains(t, string(page), " --short</code>")
	require.Contains(t, string(page), "SHA-256")
	table, err := os.ReadFile(filepath.Join(out, "accumulation-errors.csv"))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(table), "operands,adder,K,"))
	run, err := outdir.Read(out)
	require.NoError(t, err)
	require.Equal(t, "lab", run.Kind)
	require.Equal(t, []string{"accumulation-errors.csv", "accumulation-seeds.csv", "accumulation.html", "accumulation.json"}, run.Files)
}

// requireShortAndNarrow requires that what a short run prints says in its first line, and there
// alone, that it is a preview, and fits 80 columns.
func requireShortAndNarrow(t *testing.T, stdout string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	require.Contains(t, lines[0], "This is a preview, a short run")
	require.Equal(t, 1, strings.Count(stdout, "preview"))
	require.Regexp(t, `\n\d+ of \d+ goals met[^.]*\.\n$`, stdout)
	require.NotContains(t, stdout, "MISSED")
	for _, line := range lines {
		if !strings.HasPrefix(line, "Plots, tables") { // and a path of any length
			require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
		}
	}
}

// TestLabDirectories: a run has a directory of its own unless one is named, and replaces
// another only if asked to.
func TestLabDirectories(t *testing.T) {
	t.Chdir(t.TempDir())
	args := []string{"lab", "accumulation", "--short", "--text", labText(t)}
	require.Contains(t, succeed(t, args...), filepath.Join("octavo-lab", "accumulation.html"))
	require.Contains(t, succeed(t, args...), filepath.Join("octavo-lab-2", "accumulation.html"))

	foreign := filepath.Join("octavo-lab", "notes.txt")
	require.NoError(t, os.WriteFile(foreign, []byte("mine"), 0o644))
	before, err := os.ReadFile(filepath.Join("octavo-lab", "accumulation-errors.csv"))
	require.NoError(t, err)
	args = append(args, "--seed", "2", "-o", "octavo-lab")
	fail(t, 2, "it holds a run already: name another directory with -o, or replace that run with --overwrite", args...)
	after, err := os.ReadFile(filepath.Join("octavo-lab", "accumulation-errors.csv"))
	require.NoError(t, err)
	require.Equal(t, before, after)
	succeed(t, append(args, "--overwrite")...)
	after, err = os.ReadFile(filepath.Join("octavo-lab", "accumulation-errors.csv"))
	require.NoError(t, err)
	require.NotEqual(t, before, after)
	require.FileExists(t, foreign)
	fail(t, 2, "--overwrite wants --out", "lab", "accumulation", "--short", "--text", labText(t), "--overwrite")
}

// TestLabThatFails leaves nothing.
func TestLabThatFails(t *testing.T) {
	t.Chdir(t.TempDir())
	word := filepath.Join(t.TempDir(), "word")
	require.NoError(t, os.WriteFile(word, []byte("word"), 0o644))
	fail(t, 1, "too short for", "lab", "all", "--short", "--text", word)
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestLabJSON(t *testing.T) {
	out := t.TempDir()
	stdout := succeed(t, "lab", "accumulation", "--short", "--text", labText(t), "-o", out, "--json")
	var got struct {
		Length      string
		Met, Missed int
		NotJudged   int
		Controls    struct{ NotJudged int }
		Experiments []struct {
			Name  string
			Goals []struct {
				What, Outcome string
			}
			Seconds float64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, "short", got.Length)
	require.Equal(t, 4, got.NotJudged)
	require.Equal(t, 2, got.Controls.NotJudged)
	require.Zero(t, got.Met+got.Missed)
	require.Len(t, got.Experiments, 1)
	require.Equal(t, "accumulation", got.Experiments[0].Name)
	require.Len(t, got.Experiments[0].Goals, 6)
	require.Equal(t, "not judged", got.Experiments[0].Goals[0].Outcome)
	require.Positive(t, got.Experiments[0].Seconds)
	file, err := os.ReadFile(filepath.Join(out, "accumulation.json"))
	require.NoError(t, err)
	require.Equal(t, stdout, string(file), "the file is what --json prints")
}

// labAll does all experiments, short, and returns the directory of their pages, which
// TestPages opens.
func labAll(t *testing.T) string {
	out := t.TempDir()
	stdout := succeed(t, "lab", "all", "--short", "--text", labText(t), "-o", out)
	index, err := os.ReadFile(filepath.Join(out, "index.html"))
	require.NoError(t, err)
	for _, e := range experiments.All() {
		require.Contains(t, stdout, e.Title)
		require.Contains(t, string(index), e.Name+".html")
		require.FileExists(t, filepath.Join(out, e.Name+".html"))
	}
	require.Contains(t, stdout, filepath.Join(out, "index.html"))
	requireShortAndNarrow(t, stdout)
	require.Contains(t, string(index), "goals met, ")
	require.NotContains(t, string(index), "Stopped.")
	require.FileExists(t, filepath.Join(out, "index.json"))
	return out
}

func TestLabHelpListsExperiments(t *testing.T) {
	help := succeed(t, "lab", "--help")
	for _, e := range experiments.All() {
		require.Contains(t, help, e.Name)
		require.Contains(t, strings.Join(strings.Fields(help), " "), e.Title)
	}
}

func TestLabUsage(t *testing.T) {
	fail(t, 2, "there are 0 names: want parity, ", "lab")
	fail(t, 2, "there are 2 names: want parity, ", "lab", "parity", "all")
	fail(t, 2, `there is no experiment "alchemy": want parity, `, "lab", "alchemy")
	fail(t, 2, "want a whole number", "lab", "parity", "--seed", "-1")
	fail(t, 2, "--full and --short exclude each other", "lab", "parity", "--full", "--short")
}

func TestLabBadFiles(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	fail(t, 1, "--text wants a file to train on", "lab", "parity", "--text", none)
	fail(t, 1, "--activations wants a safetensors file", "lab", "parity", "--text", labText(t), "--activations", none)
	word := filepath.Join(t.TempDir(), "word")
	require.NoError(t, os.WriteFile(word, []byte("word"), 0o644))
	fail(t, 1, "too short for", "lab", "parity", "--short", "--text", word, "-o", t.TempDir())
	fail(t, 1, "name another directory with -o", "lab", "accumulation", "--short", "--text", labText(t), "-o", filepath.Join(word, "x"))
}
