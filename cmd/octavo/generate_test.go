package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/nn/generate"
)

// generated is what a test reads of the JSON.
type generated struct {
	Head                    string
	Requests                []generatedRequest
	Prefill, Decode         struct{ Tokens int }
	Steps, Together         int
	WeightBytes, CacheBytes int64
	ReadRate                float64
}

type generatedRequest struct {
	Prompt, Tokens []int32
	LogProbs       []float32
	Seed           uint64
	Text           *string
	Stop, Why      string
}

func generateJSON(t *testing.T, args ...string) (g generated) {
	t.Helper()
	out := succeed(t, append([]string{"generate", "--json", "--quiet"}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(out), &g), out)
	return g
}

// generateOne is generateJSON of one prompt.
func generateOne(t *testing.T, args ...string) generatedRequest {
	t.Helper()
	g := generateJSON(t, args...)
	require.Len(t, g.Requests, 1)
	return g.Requests[0]
}

// TestGenerate compares what is printed with the package, and in all forms.
func TestGenerate(t *testing.T) {
	m, dir, _ := byteModel(t)
	r, err := nn.ParseRecipe("fp8")
	require.NoError(t, err)
	g, err := generate.New(t.Context(), m, generate.Options{FP8: &r.FP8.Forward})
	require.NoError(t, err)
	sampling := generate.Sampling{Temperature: 0.9, TopK: 50, TopP: 0.8, Seed: 3}
	want, timing, err := g.Generate(t.Context(), generate.Request{
		Prompt: []int32{'t', 'o', ' '}, Tokens: 20, Sampling: sampling, LogProbs: true,
	})
	require.NoError(t, err)
	line := []string{
		"--model", dir, "--tokens", "20", "--temperature", "0.9", "--top-k", "50", "--top-p", "0.8",
		"--seed", "3",
	}
	all := generateJSON(t, append(line, "--prompt", "to ")...)
	got := all.Requests[0]
	require.Equal(t, want.Tokens, got.Tokens)
	require.Equal(t, want.LogProbs, got.LogProbs)
	require.Equal(t, []int32{'t', 'o', ' '}, got.Prompt)
	require.Equal(t, []int{3, 19, 19}, []int{all.Prefill.Tokens, all.Decode.Tokens, all.Steps})
	require.Equal(t, "tokens 20 tokens, as asked", got.Stop+" "+got.Why)
	require.Equal(t, g.WeightBytes(), all.WeightBytes)
	require.Equal(t, timing.CacheBytes/19, all.CacheBytes)
	require.Zero(t, all.ReadRate, "--quiet")
	var bytes []byte
	for _, id := range want.Tokens {
		bytes = append(bytes, byte(id))
	}
	valid := strings.ToValidUTF8(string(bytes), "\ufffd")
	require.Equal(t, strings.ReplaceAll(valid, "\ufffd", ""),
		strings.ReplaceAll(*got.Text, "\ufffd", ""))

	for name, o := range map[string]generate.Options{
		"fp8": {Head: &r.FP8.Forward}, "bf16": {RoundHead: true},
	} {
		o.FP8 = &r.FP8.Forward
		g, err := generate.New(t.Context(), m, o)
		require.NoError(t, err)
		want, _, err := g.Generate(t.Context(), generate.Request{
			Prompt: []int32{'t', 'o', ' '}, Tokens: 20, Sampling: sampling, LogProbs: true,
		})
		require.NoError(t, err)
		with := generateJSON(t, append(line, "--prompt", "to ", "--head", name)...)
		require.Equal(t, want.LogProbs, with.Requests[0].LogProbs, name)
		require.NotEqual(t, want.LogProbs, got.LogProbs, name)
		require.Equal(t, g.WeightBytes(), with.WeightBytes, name)
		require.Less(t, with.WeightBytes, all.WeightBytes, name)
		require.Equal(t, name, with.Head)
	}

	file := filepath.Join(t.TempDir(), "prompt")
	require.NoError(t, os.WriteFile(file, []byte("to "), 0o666))
	var stdout, stderr strings.Builder
	args := append([]string{"generate"}, line...)
	require.Zero(t, run(append(args, "--prompt-file", file), nil, &stdout, &stderr),
		stderr.String())
	require.Equal(t, *got.Text, stdout.String())
	require.Regexp(t, `^octavo: 20 tokens, as asked; prefill 3 tokens at [\d.]+/s; `+
		`decode 19 tokens at [\d.]+/s, reading [\d.]+ kB a step, [\d.e+-]+% of this memory's [\d.]+ GB/s\n$`, stderr.String())
	for _, together := range []bool{true, false} {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		require.NoError(t, err)
		other, err := os.Create(filepath.Join(t.TempDir(), "err"))
		require.NoError(t, err)
		want := *got.Text
		if together {
			require.NoError(t, other.Close())
			other, want = out, want+"\noctavo: 20 tokens, as asked; "
		}
		require.Zero(t, run(append(args, "--prompt-file", file, "--progress", "none"), nil, out, other))
		all, err := os.ReadFile(out.Name())
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(all), want), "%q", all)
		if require.NoError(t, out.Close()); together {
			continue
		}
		require.Equal(t, want, string(all))
		all, err = os.ReadFile(other.Name())
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(all), "octavo: 20 tokens, "), "%q", all)
		require.NoError(t, other.Close())
	}
	stdout.Reset()
	stderr.Reset()
	require.Zero(t, run(append(args, "--quiet"), strings.NewReader("to "), &stdout, &stderr))
	require.Equal(t, *got.Text, stdout.String())
	require.Empty(t, stderr.String())

	var ids strings.Builder
	for _, id := range want.Tokens {
		fmt.Fprintln(&ids, id)
	}
	stdout.Reset()
	in := strings.NewReader("[116, 111 32]")
	require.Zero(t, run(append(args, "--ids", "--batch-invariant"), in, &stdout, &stderr))
	require.Equal(t, ids.String(), stdout.String())
	require.Nil(t, generateOne(t, append(line, "--ids", "--prompt", "116 111 32")...).Text)
}

// TestGenerateEnds stops at the tokens that the model says, or where its context is full.
func TestGenerateEnds(t *testing.T) {
	_, dir, _ := byteModel(t)
	line := []string{
		"--model", dir, "--prompt", "to be", "--tokens", "0", "--cache", "bf16", "--recipe", "none",
	}
	whole := generateOne(t, line...)
	require.Equal(t, "context the context of 64 tokens is full", whole.Stop+" "+whole.Why)
	require.Len(t, whole.Tokens, 64-5+1)
	short := generateOne(t, dir, "--prompt", "to be", "--context", "7", "--tokens", "9")
	require.Equal(t, "context", short.Stop)
	end := whole.Tokens[4]
	text := fmt.Sprintf(`{"eos_token_id": [255, %d]}`, end)
	require.NoError(t,
		os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(text), 0o666))
	cut := generateOne(t, line...)
	require.Equal(t, whole.Tokens[:slices.Index(whole.Tokens, end)+1], cut.Tokens)
	require.Equal(t, fmt.Sprintf("end the text ended with token %d", end), cut.Stop+" "+cut.Why)

	var stdout, stderr strings.Builder
	args := append([]string{"generate"}, line...)
	require.Zero(t, run(append(args, "--prompt", "not"), nil, &stdout, &stderr), stderr.String())
	require.Contains(t, stderr.String(), "octavo: 2 requests: 1 ended, 1 filled the context; ")
}

// TestGenerateStories continues as the model itself would, whose attention is FP32.
func TestGenerateStories(t *testing.T) {
	path := testutil.Shared(t, "data", "stories260K.safetensors")
	m := loadSaved(t, path)
	want := []int32{1}
	var logProbs []float64
	for range 24 {
		logits, err := m.Logits(t.Context(), want, 1, len(want))
		require.NoError(t, err)
		last := logits[len(logits)-512:]
		best, sum := slices.Max(last), 0.0
		for _, x := range last {
			sum += math.Exp(float64(x - best))
		}
		want, logProbs = append(want, int32(slices.Index(last, best))), append(logProbs, -math.Log(sum))
	}
	line := []string{"--model", path, "--ids", "--prompt", "1", "--tokens", "24"}
	exact := generateOne(t, append(line, "--recipe", "none", "--cache", "bf16")...)
	require.Equal(t, want[1:], exact.Tokens)
	exact = generateOne(t, append(line, "--recipe", "none", "--cache", "f32")...)
	require.Equal(t, want[1:], exact.Tokens)
	for i, p := range logProbs {
		require.InDelta(t, p, exact.LogProbs[i], 1e-5)
	}
	require.Equal(t, want[1:9], generateOne(t, line...).Tokens[:8], "in FP8 a while")
}

// TestGenerateFamilies continues as transformers does, on directories as it saves them, without a
// tokenizer.
func TestGenerateFamilies(t *testing.T) {
	for _, name := range []string{"gemma3", "gpt-oss", "deepseek-v3-yarn", "qwen3-moe"} {
		dir := testutil.Shared(t, "models", name)
		data, err := os.ReadFile(dir + ".json")
		require.NoError(t, err)
		var golden struct {
			Prompts map[string]struct {
				IDs, Tokens []int32
				LogProbs    []float64
			}
		}
		require.NoError(t, json.Unmarshal(data, &golden))
		for prompt, want := range golden.Prompts {
			got := generateOne(t, "--model", dir, "--ids", "--prompt", fmt.Sprint(want.IDs), "--tokens", "8",
				"--recipe", "none", "--cache", "f32")
			require.Equal(t, want.Tokens, got.Tokens, "%s %s", name, prompt)
			for i, p := range want.LogProbs {
				require.InDelta(t, p, got.LogProbs[i], 1e-5)
			}
			fp8 := generateOne(t, "--model", dir, "--ids", "--prompt", fmt.Sprint(want.IDs), "--tokens", "1")
			require.InDelta(t, want.LogProbs[0], fp8.LogProbs[0], 0.3, "%s %s in FP8", name, prompt)
		}
	}
}

// TestGenerateSeveral compares prompts of a file with each of them alone, and reads what is
// printed of them.
func TestGenerateSeveral(t *testing.T) {
	_, dir, _ := byteModel(t)
	with := func(args ...string) []string {
		return append([]string{"--model", dir, "--tokens", "9", "--temperature", "0.5"}, args...)
	}
	one := generateOne(t, with("--prompt", "to be")...)
	two := generateOne(t, with("--prompt", "that\n", "--seed", "7", "--tokens", "4")...)
	file := filepath.Join(t.TempDir(), "prompts.jsonl")
	lines := `"to be"` + "\n\n" +
		`{"seed": 7, "prompt": "that\n", "tokens": 4}` + "\r\n" + `[116, 111, 32, 98, 101]`
	require.NoError(t, os.WriteFile(file, []byte(lines), 0o666))
	for _, n := range []string{"0", "1", "2"} {
		all := generateJSON(t, with("--prompts", file, "--batch", n)...)
		require.Equal(t, []generatedRequest{one, two, one}, all.Requests, n)
		require.Equal(t, 15, all.Prefill.Tokens)
		require.Equal(t, 8+3+8, all.Decode.Tokens)
		require.Equal(t, map[string]int{"0": 8, "1": 19, "2": 11}[n], all.Steps)
		require.Equal(t, map[string]int{"0": 3, "1": 1, "2": 2}[n], all.Together)
	}

	var stdout, stderr strings.Builder
	args := append([]string{"generate", "--quiet"}, with("--prompts", file)...)
	require.Zero(t, run(args, nil, &stdout, &stderr), stderr.String())
	require.Equal(t, "==> 1: \"to be\" <==\n"+ended(*one.Text)+
		"\n==> 2: \"that\\n\" <==\n"+ended(*two.Text)+
		"\n==> 3: [116 111 32 98 101] <==\n"+ended(*one.Text), stdout.String())

	plain := filepath.Join(t.TempDir(), "prompts.txt")
	require.NoError(t, os.WriteFile(plain, []byte("to be\n \nthat\r\n"), 0o666))
	got := generateJSON(t, with("--prompts", plain)...).Requests
	require.Len(t, got, 2)
	require.Equal(t, one, got[0])
	require.Equal(t, []int32{'t', 'h', 'a', 't'}, got[1].Prompt)
	ids := generateJSON(t, with("--ids", "--prompt", "116 111 32 98 101", "--prompt", "1")...)
	require.Equal(t, one.Tokens, ids.Requests[0].Tokens)
}

// ended is a text with its last line ended.
func ended(text string) string {
	if strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// TestGenerateBatchInvariant runs requests alone and in batches of other composition and
// order, under every recipe: either --batch-invariant takes it and all have the same bits, or
// it refuses it and some do not.
func TestGenerateBatchInvariant(t *testing.T) {
	_, dir, _ := byteModel(t)
	names := append(evaluate.Names(), "none")
	if testing.Short() {
		names = []string{"fp8", "mxfp8", "te-current", "nvfp4", "none"}
	}
	lines := []string{
		`"to be"`, `{"prompt": "or not to be: that is the question here", "seed": 3}`, `"a"`,
		`{"prompt": "to be", "temperature": 1.5, "tokens": 3}`,
		`{"prompt": "the law", "temperature": 0}`,
	}
	orders := [][]int{ // the last has a prompt cut between passes
		{0, 1, 2, 3, 4}, {4, 2, 0, 1, 3}, {3, 0, 1}, {1, 0, 1, 4, 1, 1, 1, 1, 1, 0, 1},
	}
	for _, name := range names {
		if _, err := parseGenerateRecipe(name); err != nil {
			continue
		}
		with := []string{"--model", dir, "--recipe", name, "--tokens", "8", "--temperature", "0.7"}
		batch := func(order []int, args ...string) []generatedRequest {
			var text strings.Builder
			for _, i := range order {
				fmt.Fprintln(&text, lines[i])
			}
			file := filepath.Join(t.TempDir(), "prompts.jsonl")
			require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o666))
			return generateJSON(t,
				slices.Concat(with, []string{"--prompts", file}, args)...).Requests
		}
		var alone []generatedRequest
		for i := range lines {
			alone = append(alone, batch([]int{i})...)
		}
		differ := 0
		for i, order := range orders {
			for j, got := range batch(order, "--batch", fmt.Sprint(2*i%6)) {
				if !reflect.DeepEqual(alone[order[j]], got) {
					differ++
				}
			}
		}
		var stdout, stderr strings.Builder
		args := slices.Concat([]string{"generate", "--quiet", "--batch-invariant"}, with)
		status := run(append(args, "--prompt", "a"), nil, &stdout, &stderr)
		if differ == 0 {
			require.Zero(t, status, "%s: %s", name, stderr.String())
			continue
		}
		require.Equal(t, exitUsage, status, name)
		require.Regexp(t,
			"^octavo: --recipe "+name+" --batch-invariant: inputs by .*: a token's codes "+
				"depend on what is multiplied with it: use a recipe .*\n$", stderr.String())
	}
}

func TestGenerateRefuses(t *testing.T) {
	_, dir, _ := byteModel(t)
	with := func(args ...string) []string {
		return append([]string{"generate", "--model", dir}, args...)
	}
	fail(t, 2, "want one model, there are 0 arguments", "generate", "--prompt", "a")
	for _, two := range [][]string{
		{"--prompt", "", "--prompt-file", "x"}, {"--prompts", "", "--prompt", "x"},
		{"--prompts", "x", "--prompt-file", "x"},
	} {
		fail(t, 2, "give one of them", with(two...)...)
	}
	fail(t, 2, "want one model, as an argument or by its flag, not both", with("x")...)
	fail(t, 2,
		"use a recipe whose inputs have scales of their own for each token, such as fp8, mxfp8",
		with("--recipe", "te-current", "--batch-invariant", "--prompt", "a")...)
	fail(t, 2, "--head te-current --batch-invariant: inputs by",
		with("--head", "te-current", "--batch-invariant", "--prompt", "a")...)
	fail(t, 2, "bf16 rounds values and has no codes", with("--recipe", "bf16")...)
	fail(t, 2, "want e4m3 or bf16", with("--cache", "e5m2")...)
	fail(t, 2, "want a number from 0 to 1", with("--top-p", "1.5")...)
	fail(t, 2, "want a number that is not negative", with("--temperature", "NaN")...)
	fail(t, 1, "--prompt: the prompt is empty", with("--prompt", "")...)
	long := strings.Repeat("a", 65)
	fail(t, 1,
		"--prompt 2: the prompt has 65 tokens and the context room for 64: give a shorter prompt",
		with("--prompt", "a", "--prompt", long)...)
	fail(t, 1, "the context room for 8: give a shorter prompt, or --context 9 or more: "+
		"the model is for 64", with("--context", "8", "--prompt", long[:9])...)
	fail(t, 1, "a context of 65: it must be at most 64",
		with("--context", "65", "--prompt", long)...)
	for says, line := range map[string]string{
		"it has no prompt":                       "\n \n",
		"line 2: it is not UTF-8":                "\"a\"\n\"\xff\"",
		"line 1: the prompt is 7":                "7",
		"line 1: the prompt is null":             "null",
		"line 1: the prompt is [1,":              `[1, "a"]`,
		"line 1: the prompt is [null]":           `[null]`,
		"line 1: the prompt is empty":            `""`,
		`line 1: it has no "prompt"`:             `{"seed": 1}`,
		`line 2: json: unknown field "sed"`:      "[1]\n" + `{"prompt": "a", "sed": 1}`,
		"line 1: something follows the object":   `{"prompt": "a"} {"prompt": "b"}`,
		"line 1: token 1 of the prompt is 256":   "[1, 256]",
		"line 1: Sampling.TopP is 2":             `{"prompt": "a", "topP": 2}`,
		"line 1: Request.Tokens is -1":           `{"prompt": "a", "tokens": -1}`,
		"line 1: the prompt has 65 tokens and":   `"` + long + `"`,
		"line 1: json: cannot unmarshal":         `{"prompt": "a", "seed": -1}`,
		"line 1: unexpected EOF: want an object": `{"prompt": "a"`,
	} {
		file := filepath.Join(t.TempDir(), "p.jsonl")
		require.NoError(t, os.WriteFile(file, []byte(line), 0o666))
		fail(t, 1, says, with("--prompts", file)...)
	}
	fail(t, 1, `--prompt: token 1 is "x": want whole numbers`, with("--ids", "--prompt", "1 x")...)
	fail(t, 1, "token 0 of the prompt is 256: the model has those from 0 to 255",
		with("--ids", "--prompt", "256")...)
	require.NoError(t, os.Remove(filepath.Join(dir, "tokenizer.json")))
	fail(t, 1, "without text give and print IDs of tokens with --ids", with("--prompt", "a")...)
}
