package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// landed trains until a rule stops the run, and returns where it landed.
func landed(t *testing.T, more ...string) string {
	dir := t.TempDir()
	rules, to := filepath.Join(dir, "rules.toml"), filepath.Join(dir, "landed")
	require.NoError(t, os.WriteFile(rules, []byte("[[rule]]\nseries = 'gradient-norm'\nleast = 1\n"+
		"threshold = 1e-9\naction = 'stop'\n"), 0o644))
	args := append([]string{"--rules", rules, "--landing", to, "--steps", "20", "--profile", "te-delayed"}, more...)
	status, _, stdout, stderr := trainSmall(t, args...)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "octavo: rule 1 stopped the run: step ")
	require.Contains(t, stdout, "What happened first: "+to)
	return to
}

func TestReplay(t *testing.T) {
	dir := landed(t)
	text := succeed(t, "replay", dir)
	require.True(t, strings.HasPrefix(strings.TrimSpace(text), "Reproduced: "))
	require.Contains(t, text, "It stopped: rule 1 stopped the run")
	require.Contains(t, text, "same bits: codes of model.layers.0.")
	require.NotContains(t, text, "OTHER BITS")
	var v struct {
		Same   bool
		Checks []struct{ Differ, Elements int }
	}
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "replay", dir, "--json")), &v))
	require.True(t, v.Same)
	require.NotEmpty(t, v.Checks)
	require.ElementsMatch(t, []string{"index.html", "landing.json", "operator.safetensors", "telemetry.jsonl",
		"octavo-run.json"}, entriesOf(t, dir))

	fail(t, 1, "name a directory that octavo train --landing wrote", "replay", filepath.Join(dir, "no"))
	fail(t, 2, "want one directory, there are 0 arguments", "replay")
	require.NoError(t, os.Truncate(filepath.Join(dir, "operator.safetensors"), 20))
	fail(t, 1, "copy the bundle again", "replay", dir)

	status, out, _, stderr := trainSmall(t, "--landing", filepath.Join(dir, "none"))
	require.Zero(t, status, stderr)
	require.NoDirExists(t, filepath.Join(dir, "none"), "a run that ends leaves none")
	require.NotEmpty(t, entriesOf(t, out))
	status, _, _, stderr = trainSmall(t, "--landing", dir)
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "--overwrite")

	// With checkpoints, too, and a run that goes on may land anew.
	kept := filepath.Join(t.TempDir(), "kept")
	dir = landed(t, "--out", kept, "--checkpoint-every", "2", "--checkpoint-sync")
	succeed(t, "replay", dir)
	status, _, _, stderr = trainSmall(t, "--out", kept, "--resume", "--landing", dir, "--overwrite")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "--resume goes on with a run and --overwrite replaces it")
	again := filepath.Join(t.TempDir(), "again")
	status, _, _, stderr = trainSmall(t, "--out", kept, "--resume", "--steps", "20", "--landing", again)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "octavo: rule 1 stopped the run: step ")
	succeed(t, "replay", again)
}
