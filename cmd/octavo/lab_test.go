package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/experiments"
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
	require.Contains(t, stdout, "met    Normal operands")
	require.Contains(t, stdout, filepath.Join(out, "accumulation.html"))
	page, err := os.ReadFile(filepath.Join(out, "accumulation.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "octavo lab accumulation --seed 5 --text ")
	require.Contains(t, string(page), " --short</code>")
	require.Contains(t, string(page), "SHA-256")
	table, err := os.ReadFile(filepath.Join(out, "accumulation-errors.csv"))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(table), "operands,adder,K,"))
}

func TestLabJSON(t *testing.T) {
	out := t.TempDir()
	stdout := succeed(t, "lab", "accumulation", "--short", "--text", labText(t), "-o", out, "--json")
	var got []struct {
		Name  string
		Goals []struct {
			What string
			Met  bool
		}
		Seconds float64
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Len(t, got, 1)
	require.Equal(t, "accumulation", got[0].Name)
	require.NotEmpty(t, got[0].Goals)
	require.Positive(t, got[0].Seconds)
}

// TestLabAll does all experiments, short.
func TestLabAll(t *testing.T) {
	if testing.Short() {
		t.Skip("the experiments have tests of their own")
	}
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
}

func TestLabHelpListsExperiments(t *testing.T) {
	help := succeed(t, "lab", "--help")
	for _, e := range experiments.All() {
		require.Contains(t, help, e.Name)
		require.Contains(t, help, e.Title)
	}
}

func TestLabUsage(t *testing.T) {
	fail(t, 2, "there are 0 names: want parity, ", "lab")
	fail(t, 2, "there are 2 names: want parity, ", "lab", "parity", "all")
	fail(t, 2, `there is no experiment "alchemy": want parity, `, "lab", "alchemy")
	fail(t, 2, "want a whole number", "lab", "parity", "--seed", "-1")
}

func TestLabBadFiles(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	fail(t, 1, "--text wants a file to train on", "lab", "parity", "--text", none)
	fail(t, 1, "--activations wants a safetensors file", "lab", "parity", "--text", labText(t), "--activations", none)
	word := filepath.Join(t.TempDir(), "word")
	require.NoError(t, os.WriteFile(word, []byte("word"), 0o644))
	fail(t, 1, "too short for", "lab", "parity", "--short", "--text", word, "-o", t.TempDir())
	fail(t, 1, "name another directory with --out", "lab", "accumulation", "--short", "--text", labText(t), "-o", filepath.Join(word, "x"))
}
