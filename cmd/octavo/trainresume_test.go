package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
)

// TestTrainRecipe: what the FP8 model does is said wherever a run is described, and
// it makes a difference.
func TestTrainRecipe(t *testing.T) {
	curves := map[string]string{}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"gradients E4M3, moments fp32, activations fp32", nil},
		{"gradients E4M3 rounded at random, moments fp32, activations fp32", []string{"--stochastic"}},
		{"gradients E4M3, moments bf16, activations fp32", []string{"--moments", "bf16"}},
		{"gradients E4M3, moments fp8, activations fp32", []string{"--moments", "fp8"}},
		{"gradients E4M3, moments fp8-expanded, activations fp32", []string{"--moments", "fp8-expanded"}},
		{"gradients E4M3, moments fp32, activations fp8-swiglu", []string{"--activations", "fp8-swiglu"}},
	} {
		status, out, stdout, stderr := trainSmall(t, c.args...)
		require.Zero(t, status, stderr)
		require.Contains(t, strings.Join(strings.Fields(stdout), " "), " FP8: te-block-pow2, "+c.says+" Curves, telemetry")
		page, err := os.ReadFile(filepath.Join(out, "index.html"))
		require.NoError(t, err)
		require.Contains(t, string(page), "FP8: te-block-pow2, "+c.says+".")
		data, err := os.ReadFile(filepath.Join(out, "curves.csv"))
		require.NoError(t, err)
		require.NotContains(t, curves, string(data), "%q and %q", c.says, curves[string(data)])
		curves[string(data)] = c.says
	}
	for says, args := range map[string][]string{
		"nvfp4, moments fp32, activations fp32":                   {"--recipe", "nvfp4"},
		"nvfp4 without stochastic, moments fp32, activations fp8": {"--recipe", "nvfp4", "--without", "stochastic", "--activations", "fp8"},
		"mxfp4, moments fp32, activations fp32":                   {"--recipe", "mxfp4"},
		"deepseek-v3, moments bf16, activations deepseek-v3":      {"--recipe", "deepseek-v3", "--moments", "bf16"},

		"deepseek-v3 without requantized without bf16-moments, moments fp8, activations fp8": {
			"--recipe", "deepseek-v3", "--without", "requantized,bf16-moments", "--moments", "fp8", "--activations", "fp8",
		},
	} {
		status, out, stdout, stderr := trainSmall(t, args...)
		require.Zero(t, status, stderr)
		model := strings.ToUpper(strings.FieldsFunc(says, func(r rune) bool { return r == ',' || r == '-' || r == ' ' })[0])
		require.Contains(t, strings.Join(strings.Fields(stdout), " "), " "+model+": "+says+" Curves, telemetry")
		data, err := os.ReadFile(filepath.Join(out, "curves.csv"))
		require.NoError(t, err)
		require.NotContains(t, curves, string(data))
		curves[string(data)] = says
	}
	_, out, _, _ := trainSmall(t, "--activations", "fp8")
	data, err := os.ReadFile(filepath.Join(out, "curves.csv"))
	require.NoError(t, err)
	require.Equal(t, "gradients E4M3, moments fp32, activations fp32", curves[string(data)], "the same bits")
}

var times = regexp.MustCompile(`(?m)^ *time .*`)

// timesInFiles are the fields of result.json and metrics.prom that are times.
var timesInFiles = regexp.MustCompile(`"seconds": .*|octavo_train_step_seconds_total\{.*`)

// TestTrainResume runs four steps, loses the last one and what was written, and goes
// on.
func TestTrainResume(t *testing.T) {
	out, text := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("round and round the rugged rock. ", 50)), 0o644))
	checkpoints := []string{"--text", text, "--out", out, "--checkpoint-every", "3", "--keep-checkpoints", "2"}
	status, _, want, stderr := trainSmall(t, checkpoints...)
	require.Zero(t, status, stderr)
	require.Empty(t, stderr)
	files := map[string]string{}
	for _, name := range []string{
		"curves.csv", "telemetry.csv", "spikes.csv", "result.json", "metrics.prom", "loss.svg", "loss.png",
		"checkpoint-0000004/fp32.safetensors", "checkpoint-0000004/fp8.safetensors", "checkpoint-0000004/run.json",
	} {
		data, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		files[name] = timesInFiles.ReplaceAllString(string(data), "")
		require.NoError(t, os.Remove(filepath.Join(out, name)))
	}
	require.DirExists(t, filepath.Join(out, "checkpoint-0000003"))
	require.NoError(t, os.RemoveAll(filepath.Join(out, "checkpoint-0000004")))

	status, _, got, stderr := trainSmall(t, append(checkpoints, "--resume")...)
	require.Zero(t, status, stderr)
	require.Empty(t, stderr)
	require.Equal(t, strings.Fields(times.ReplaceAllString(want, "")), strings.Fields(times.ReplaceAllString(got, ""))) // columns are as wide as times
	for name, data := range files {
		again, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		require.True(t, data == timesInFiles.ReplaceAllString(string(again), ""), name)
	}

	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--out", out, "--resume", "--moments", "fp8"}, 1, "octavo: --moments is fp8, but " + filepath.Join(out, "checkpoint-0000004") + " was saved with fp32: leave it out, or give the same\n"},
		{[]string{"--out", out, "--checkpoint-every", "1"}, 2, out + ": it holds a run already: name another directory with -o, or replace that run with --overwrite (see octavo train --help)\n"},
	} {
		status, _, stdout, stderr := trainSmall(t, c.args...)
		require.Equal(t, c.status, status)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.says)
	}

	older, newer := filepath.Join(out, "checkpoint-0000003"), filepath.Join(out, "checkpoint-0000004")
	require.NoError(t, os.Remove(filepath.Join(newer, "run.json")))
	status, _, got, stderr = trainSmall(t, "--out", out, "--resume")
	require.Zero(t, status, stderr)
	require.Equal(t, strings.Fields(times.ReplaceAllString(want, "")), strings.Fields(times.ReplaceAllString(got, ""))) // columns are as wide as times
	require.True(t, strings.HasPrefix(stderr, "octavo: warning: checkpoint "+newer+" cannot be used: "), stderr)

	require.NoError(t, os.RemoveAll(older))
	require.NoError(t, os.Remove(filepath.Join(newer, "run.json")), "it was written anew")
	status, _, stdout, stderr := trainSmall(t, "--out", out, "--resume")
	require.Equal(t, 1, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, newer+" cannot be used: ")
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
}

// TestTrainDirectories: without -o each run has a directory of its own, and --resume
// finds the one with the newest checkpoint.
func TestTrainDirectories(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("round and round the rugged rock. ", 50)), 0o644))
	t.Chdir(t.TempDir())
	train := func(args ...string) (status int, stdout, stderr string) {
		var o, e bytes.Buffer
		status = run(append([]string{"--progress=none", "train", "--text", text, "--batch", "2", "--context", "16",
			"--dim", "16", "--layers", "1", "--heads", "2", "--hidden", "24"}, args...), strings.NewReader(""), &o, &e)
		return status, o.String(), e.String()
	}
	status, _, stderr := train("--resume")
	require.Equal(t, 1, status)
	require.Equal(t, "octavo: there is no checkpoint in octavo-train or octavo-train-2, ... to resume from: name with -o the directory of a run with --checkpoint-every, or leave out --resume\n", stderr)
	for i, want := range []string{"octavo-train", "octavo-train-2", "octavo-train-3"} {
		args := []string{"--steps", "2"}
		if i == 1 {
			args = append(args, "--checkpoint-every", "1")
		}
		status, stdout, stderr := train(args...)
		require.Zero(t, status, stderr)
		require.Empty(t, stderr)
		require.Contains(t, stdout, filepath.Join(want, "index.html")+"\n")
	}
	require.Equal(t, []string{"octavo-train", "octavo-train-2", "octavo-train-3"}, entriesOf(t, "."))
	before, err := os.ReadFile(filepath.Join("octavo-train-2", "curves.csv"))
	require.NoError(t, err)

	status, stdout, stderr := train("--resume", "--steps", "5")
	require.Zero(t, status, stderr)
	require.Equal(t, "octavo: going on with the run in octavo-train-2\n", stderr)
	require.Contains(t, stdout, filepath.Join("octavo-train-2", "index.html")+"\n")
	require.Contains(t, stdout, "Extended after step 2 from 2 to 5 steps: ")
	after, err := os.ReadFile(filepath.Join("octavo-train-2", "curves.csv"))
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(after, before))
	require.Equal(t, 6, bytes.Count(after, []byte("\n")))

	require.NoError(t, os.WriteFile(filepath.Join("octavo-train-2", "mine"), nil, 0o666))
	status, _, stderr = train("--steps", "1", "-o", "octavo-train-2", "--overwrite")
	require.Zero(t, status, stderr)
	m, err := outdir.Read("octavo-train-2")
	require.NoError(t, err)
	require.ElementsMatch(t, append(m.Files, outdir.ManifestName, "mine"), entriesOf(t, "octavo-train-2"), "and no checkpoint of the old run")
}

// TestTrainResumeWithoutFlags: they are those of the run, its text and checkpoints too,
// and what is given counts. Whether a run waits for checkpoints may change.
func TestTrainResumeWithoutFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("text", []byte(strings.Repeat("round and round the rugged rock. ", 50)), 0o644))
	train := func(args ...string) (status int, stderr string) {
		var e bytes.Buffer
		status = run(append([]string{"--progress=none", "train"}, args...), strings.NewReader(""), io.Discard, &e)
		return status, e.String()
	}
	command := strings.Fields("--text text --steps 4 --batch 2 --context 16 --dim 16 --layers 1 --heads 2 --hidden 24 --lr 0.0017" +
		" --seed 5 --stochastic --smooth token --moments bf16 --gradient-format e5m2 --profile te-delayed --telemetry-every 3")
	status, stderr := train(append(command, "-o", "whole")...)
	require.Zero(t, status, stderr)
	waits := func() (value string) {
		saved, err := comparison.SavedFlags("resumed")
		require.NoError(t, err)
		for _, f := range saved {
			if f.Name == "checkpoint-sync" {
				value = f.Value
			}
		}
		return value
	}
	status, stderr = train(append(command, "-o", "resumed", "--checkpoint-every", "1", "--keep-checkpoints", "3", "--checkpoint-sync")...)
	require.Zero(t, status, stderr)
	require.Equal(t, "true", waits())
	for _, name := range []string{"checkpoint-0000003", "checkpoint-0000004"} { // as if it had been killed
		require.NoError(t, os.RemoveAll(filepath.Join("resumed", name)))
	}

	status, stderr = train("--resume", "-o", "resumed")
	require.Zero(t, status, stderr)
	require.Empty(t, stderr)
	for _, name := range []string{"curves.csv", "telemetry.csv"} {
		want, err := os.ReadFile(filepath.Join("whole", name))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join("resumed", name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), name)
	}
	whole, err := outdir.Read("whole")
	require.NoError(t, err)
	resumed, err := outdir.Read("resumed")
	require.NoError(t, err)
	require.Equal(t, whole.Command, resumed.Command)
	checkpoints := func() (names []string) {
		names, err := filepath.Glob(filepath.Join("resumed", "checkpoint-*"))
		require.NoError(t, err)
		return names
	}
	require.Len(t, checkpoints(), 3)
	require.Equal(t, "true", waits())

	status, stderr = train("--resume", "-o", "resumed", "--steps", "6", "--keep-checkpoints", "1", "--checkpoint-sync=false")
	require.Zero(t, status, stderr)
	require.Equal(t, "false", waits())
	require.Equal(t, []string{filepath.Join("resumed", "checkpoint-0000006")}, checkpoints())
	status, stderr = train("--resume", "-o", "resumed", "--layers", "4")
	require.Equal(t, 1, status)
	require.Equal(t, "octavo: --layers is 4, but "+checkpoints()[0]+" was saved with 1: leave it out, or give the same\n", stderr)
	status, stderr = train("--resume", "-o", "resumed", "--steps", "300", "--checkpoint-every", "0", "--text", "whole/curves.csv")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "octavo: --text is curves.csv with SHA-256 ")
}
