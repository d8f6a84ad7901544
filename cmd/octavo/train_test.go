package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/swiglu"
)

// trainSmall runs octavo train on a small text with a small model.
func trainSmall(t *testing.T, more ...string) (status int, out, stdout, stderr string) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("round and round the rugged rock. ", 50)), 0o644))
	out = filepath.Join(dir, "new", "out")
	args := append([]string{"--progress=none", "train", "--text", text, "--out", out, "--steps", "4", "--batch", "2", "--context", "16",
		"--dim", "16", "--layers", "1", "--heads", "2", "--hidden", "24"}, more...)
	var o, e bytes.Buffer
	status = run(args, strings.NewReader(""), &o, &e)
	return status, out, o.String(), e.String()
}

func TestTrain(t *testing.T) {
	status, out, stdout, stderr := trainSmall(t)
	require.Zero(t, status, stderr)
	require.Empty(t, stderr)
	for _, want := range []string{"FP32", "FP8", "gap", "held-out loss", "0.mlp.down", "te-block-pow2", "index.html"} {
		require.Contains(t, stdout, want)
	}
	m, err := outdir.Read(out)
	require.NoError(t, err)
	require.Equal(t, "train", m.Kind)
	require.Contains(t, m.Command, "octavo train --text ")
	require.ElementsMatch(t, append(m.Files, outdir.ManifestName), entriesOf(t, out))
	for _, name := range []string{"curves.csv", "telemetry.csv", "spikes.csv", "result.json", "metrics.prom", "index.html", "loss.svg", "loss.png"} {
		require.Contains(t, m.Files, name)
		info, err := os.Stat(filepath.Join(out, name))
		require.NoError(t, err)
		require.Positive(t, info.Size(), name)
	}
	page, err := os.ReadFile(filepath.Join(out, "index.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "--recipe te-block-pow2 --gradient-format e4m3 --stochastic=false --smooth none --moments fp32 --activations fp32 --telemetry-every 10")
	require.Contains(t, string(page), "octavo train --text "+filepath.Join(out, "..", "..", "text")+" --steps 4")
}

// TestTrainSaysWhatItMultipliesIn finds no FP8 where a recipe is of four bits.
func TestTrainSaysWhatItMultipliesIn(t *testing.T) {
	for recipe, model := range map[string]string{"fp8": "FP8", "mxfp8": "MXFP8", "mxfp4": "MXFP4", "nvfp4-4over6": "NVFP4"} {
		status, out, stdout, stderr := trainSmall(t, "--recipe", recipe, "--layers", "2")
		require.Zero(t, status, stderr)
		page, err := os.ReadFile(filepath.Join(out, "index.html"))
		require.NoError(t, err)
		picture, err := os.ReadFile(filepath.Join(out, "loss.svg"))
		require.NoError(t, err)
		for place, text := range map[string]string{"table": stdout, "page": string(page), "picture": string(picture)} {
			require.Contains(t, text, model, "%s of %s", place, recipe)
			if !strings.HasSuffix(model, "FP8") {
				require.NotContains(t, text, "FP8", "%s of %s", place, recipe)
			}
		}
		curves, err := os.ReadFile(filepath.Join(out, "curves.csv"))
		require.NoError(t, err)
		require.Contains(t, string(curves), "fp8", "keys stay what they are")
	}
}

// TestTrainCommandLine reads back the command that repeats a run.
func TestTrainCommandLine(t *testing.T) {
	o := comparison.Options{
		Steps: 7, LearningRate: 1e-5, Profile: "mx-floor", Stochastic: true, Smoothing: &swiglu.Smoothing{Axis: swiglu.PerToken},
		Moments: optim.MomentsBF16, Activations: nn.ActivationsFP8, TelemetryEvery: 3,
	}
	require.Equal(t, "octavo train --steps 7 --batch 0 --context 0 --dim 0 --layers 0 --heads 0 --hidden 0 --lr 1e-05 --seed 0"+
		" --recipe mx-floor --gradient-format e4m3 --stochastic=true --smooth token --moments bf16 --activations fp8 --telemetry-every 3", trainCommandLine(trainFlags{}, o))
	for path, want := range map[string]string{
		"../a/b-1.txt": "../a/b-1.txt",
		"my text":      "'my text'",
		"it's $HOME":   `'it'\''s $HOME'`,
		"a*b":          "'a*b'",
		"Tōkyō.txt":    "Tōkyō.txt",
		"a\n'\"\\\xff": `$'a\n\'"\\\xff'`,
	} {
		require.Contains(t, trainCommandLine(trainFlags{text: path}, o), "octavo train --text "+want+" --steps 7")
	}
}

func TestTrainJSON(t *testing.T) {
	status, out, stdout, stderr := trainSmall(t, "--json", "--profile", "te-delayed", "--gradient-format", "e5m2", "--smooth", "channel", "--seed", "7",
		"--moments", "fp8-expanded", "--activations", "fp8-swiglu", "--stochastic")
	require.Zero(t, status, stderr)
	file, err := os.ReadFile(filepath.Join(out, "result.json"))
	require.NoError(t, err)
	require.Equal(t, stdout, string(file))
	var got struct {
		Version   int
		StepsDone int
		Smoothing string
		Options   struct {
			Profile        string
			GradientFormat string
			Seed           int
			Moments        string
			Activations    string
			Stochastic     bool
		}
		FP8 struct{ FinalLoss float64 }
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, 1, got.Version)
	require.Equal(t, 4, got.StepsDone)
	require.Equal(t, "E5M2", got.Options.GradientFormat)
	require.Equal(t, "channel", got.Smoothing)
	require.Equal(t, "te-delayed", got.Options.Profile)
	require.Equal(t, 7, got.Options.Seed)
	require.Equal(t, "fp8-expanded", got.Options.Moments)
	require.Equal(t, "fp8-swiglu", got.Options.Activations)
	require.True(t, got.Options.Stochastic)
	require.Positive(t, got.FP8.FinalLoss)
}

func TestTrainRefuses(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--steps", "0"}, 2, `invalid argument "0" for "--steps" flag: want a whole number from 1 to 1000000`},
		{[]string{"--hidden", "x"}, 2, `invalid argument "x" for "--hidden" flag: want a whole number from 1 to 65536`},
		{[]string{"--steps", "1000001"}, 2, "from 1 to 1000000"},
		{[]string{"--batch", "2305843009213693953"}, 2, "from 1 to 4096"},
		{[]string{"--context", "65537"}, 2, "from 1 to 65536"},
		{[]string{"--dim", "8589934592", "--heads", "1"}, 2, "from 1 to 8192"},
		{[]string{"--layers", "257"}, 2, "from 1 to 256"},
		{[]string{"--heads", "257"}, 2, "from 1 to 256"},
		{[]string{"--hidden", "99999999999999999999"}, 2, "from 1 to 65536"},
		{[]string{"--batch", "1025", "--context", "1024"}, 2, "--batch 1025 and --context 1024 make 1049600 bytes: want at most 1048576 in a batch"},
		{[]string{"--telemetry-every", "-1"}, 2, "want a whole number from 0"},
		{[]string{"--dim", "18", "--heads", "4"}, 2, "--dim is 18: want a multiple of 2·heads = 8"},
		{[]string{"--lr", "NaN"}, 2, `invalid argument "NaN" for "--lr" flag: want a number above 0 and below 1`},
		{[]string{"--profile", "fp9"}, 2, `there is no recipe "fp9": did you mean fp8?`},
		{[]string{"--profile", "nvfp4-te"}, 2, `invalid argument "nvfp4-te" for "--recipe" flag: nvfp4-te is not for E4M3: training in four bits takes the parts of mxfp4, nvfp4 or nvfp4-4over6`},
		{[]string{"--recipe", "nvfp5"}, 2, `there is no recipe "nvfp5": did you mean nvfp4`},
		{[]string{"--recipe", "nvfp4", "--profile", "te-current"}, 2, "nvfp4 was given already: the FP8 model multiplies by one recipe"},
		{[]string{"--recipe", "nvfp4", "--stochastic"}, 2, "--recipe nvfp4 says what --stochastic is: give one of them"},
		{[]string{"--recipe", "nvfp4", "--without", "scales"}, 2, "part of a recipe"},
		{[]string{"--recipe", "mxfp4", "--without", "square-weights"}, 2, "recipe mxfp4 has no such part: it has hadamard,stochastic,bf16-last"},
		{[]string{"--without", "hadamard"}, 2, "name one with --recipe"},
		{[]string{"--recipe", "deepseek-v3", "--moments", "fp8"}, 2, "--recipe deepseek-v3 says --moments bf16: leave --moments out, or give --without bf16-moments too"},
		{[]string{"--recipe", "deepseek-v3", "--activations", "fp8"}, 2, "--recipe deepseek-v3 says --activations deepseek-v3: leave --activations out, or give --without requantized too"},
		{[]string{"--smooth", "both"}, 2, "want none or channel or token"},
		{[]string{"--moments", "fp4"}, 2, "want fp32 or bf16 or fp8 or fp8-expanded"},
		{[]string{"--activations", "bf16"}, 2, "want fp32 or fp8 or fp8-swiglu"},
		{[]string{"--activation-budget", "0%"}, 2, `invalid argument "0%" for "--activation-budget" flag: want a share of what all activations take, above 0% and at most 100%, or bytes, such as 64MiB`},
		{[]string{"--activation-budget", "1TB"}, 2, "or bytes, such as 64MiB"},
		{[]string{"--activation-budget", "2%"}, 1, "--activation-budget 2% is"},
		{[]string{"--stochastic=maybe"}, 2, `invalid argument "maybe" for "--stochastic" flag`},
		{[]string{"--checkpoint-every", "-1"}, 2, `"--checkpoint-every" flag: want a whole number from 0`},
		{[]string{"--resume"}, 1, "to resume from: name with -o the directory of a run with --checkpoint-every, or leave out --resume"},
		{[]string{"--resume", "--overwrite"}, 2, "--resume goes on with a run and --overwrite replaces it: give one of them"},
		{[]string{"--overwrite", "-o", ""}, 2, "--overwrite wants the directory of the run to replace: name it with -o"},
		{[]string{"--keep-checkpoints", "0"}, 2, `"--keep-checkpoints" flag: want a whole number from 1`},
		{[]string{"--workers", "-1"}, 2, `"--workers" flag: want a whole number from 0`},
		{[]string{"--context", "4000"}, 1, "too short"},
		{[]string{"--text", "no-such-file"}, 1, "--text wants a file to train on"},
		{[]string{"stray"}, 2, `want no arguments, there is "stray"`},
	} {
		status, out, stdout, stderr := trainSmall(t, c.args...)
		require.Equal(t, c.status, status, c.args)
		require.NoDirExists(t, filepath.Dir(out))
		require.Contains(t, stderr, c.says)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %q", stderr)
		require.Empty(t, stdout)
	}
}

func TestTrainOutThatIsNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	status, _, stdout, stderr := trainSmall(t, "--out", file, "--steps", "1000000")
	require.Equal(t, 1, status)
	require.Empty(t, stdout)
	require.Equal(t, "octavo: mkdir "+file+": it is there and is no directory: name another directory with -o\n", stderr)

	dir := filepath.Join(filepath.Dir(file), "dir")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "index.html"), 0o777))
	status, _, _, stderr = trainSmall(t, "--out", dir)
	require.Equal(t, 1, status)
	require.Equal(t, "octavo: "+filepath.Join(dir, "index.html")+" is a directory, but the run has a file of that name: name another directory with -o\n", stderr)
	require.Len(t, entriesOf(t, dir), 1)
}

func entriesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
