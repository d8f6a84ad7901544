package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/generate"
)

// generated is what a test reads of the JSON.
type generated struct {
	Prompt, Tokens          []int32
	Text                    *string
	Stop, Why               string
	Prefill, Decode         struct{ Tokens int }
	WeightBytes, CacheBytes int64
}

func generateJSON(t *testing.T, args ...string) (g generated) {
	t.Helper()
	out := succeed(t, append([]string{"generate", "--json"}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(out), &g), out)
	return g
}

// TestGenerate compares what is printed with the package, and in all forms.
func TestGenerate(t *testing.T) {
	m, dir, _ := byteModel(t)
	r, err := nn.ParseRecipe("fp8")
	require.NoError(t, err)
	g, err := generate.New(t.Context(), m, generate.Options{FP8: &r.FP8.Forward})
	require.NoError(t, err)
	want, err := g.Generate(t.Context(), generate.Request{
		Prompt: []int32{'t', 'o', ' '}, Tokens: 20, Sampling: generate.Sampling{Temperature: 0.9, TopK: 50, TopP: 0.8, Seed: 3},
	})
	require.NoError(t, err)
	line := []string{"--model", dir, "--tokens", "20", "--temperature", "0.9", "--top-k", "50", "--top-p", "0.8", "--seed", "3"}
	got := generateJSON(t, append(line, "--prompt", "to ")...)
	require.Equal(t, want.Tokens, got.Tokens)
	require.Equal(t, []int32{'t', 'o', ' '}, got.Prompt)
	require.Equal(t, []int{3, 19}, []int{got.Prefill.Tokens, got.Decode.Tokens})
	require.Equal(t, "tokens 20 tokens, as --tokens says", got.Stop+" "+got.Why)
	require.Equal(t, g.WeightBytes(), got.WeightBytes)
	require.Equal(t, want.CacheBytes/19, got.CacheBytes)
	var bytes []byte
	for _, id := range want.Tokens {
		bytes = append(bytes, byte(id))
	}
	valid := strings.ToValidUTF8(string(bytes), "\ufffd")
	require.Equal(t, strings.ReplaceAll(valid, "\ufffd", ""), strings.ReplaceAll(*got.Text, "\ufffd", ""))

	file := filepath.Join(t.TempDir(), "prompt")
	require.NoError(t, os.WriteFile(file, []byte("to "), 0o666))
	var stdout, stderr strings.Builder
	args := append([]string{"generate"}, line...)
	require.Zero(t, run(append(args, "--prompt-file", file), nil, &stdout, &stderr), stderr.String())
	require.Equal(t, *got.Text, stdout.String())
	require.Regexp(t, `^octavo: 20 tokens, as --tokens says; prefill 3 tokens in [\d.e+-]+ s, [\d.]+ a second; `+
		`decode 19 tokens in [\d.e+-]+ s, [\d.]+ a second, which read [\d.]+ kB each.*\n$`, stderr.String())
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
	require.Zero(t, run(append(args, "--ids", "--batch-invariant"), strings.NewReader("[116, 111 32]"), &stdout, &stderr))
	require.Equal(t, ids.String(), stdout.String())
	require.Nil(t, generateJSON(t, append(line, "--ids", "--prompt", "116 111 32")...).Text)
}

// TestGenerateEnds stops at the tokens that the model says, or where its context is full.
func TestGenerateEnds(t *testing.T) {
	_, dir, _ := byteModel(t)
	whole := generateJSON(t, "--model", dir, "--prompt", "to be", "--tokens", "0", "--cache", "bf16", "--recipe", "none")
	require.Equal(t, "context the context of 64 tokens is full", whole.Stop+" "+whole.Why)
	require.Len(t, whole.Tokens, 64-5+1)
	short := generateJSON(t, "--model", dir, "--prompt", "to be", "--context", "7", "--tokens", "9")
	require.Equal(t, "context", short.Stop)
	end := whole.Tokens[4]
	text := fmt.Sprintf(`{"eos_token_id": [255, %d]}`, end)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(text), 0o666))
	cut := generateJSON(t, "--model", dir, "--prompt", "to be", "--tokens", "0", "--cache", "bf16", "--recipe", "none")
	require.Equal(t, whole.Tokens[:slices.Index(whole.Tokens, end)+1], cut.Tokens)
	require.Equal(t, fmt.Sprintf("end the text ended with token %d", end), cut.Stop+" "+cut.Why)
}

// TestGenerateStories continues as the model itself would, whose attention is FP32.
func TestGenerateStories(t *testing.T) {
	path := testutil.Shared(t, "data", "stories260K.safetensors")
	m := loadSaved(t, path)
	want := []int32{1}
	for range 24 {
		logits, err := m.Logits(t.Context(), want, 1, len(want))
		require.NoError(t, err)
		last := logits[len(logits)-512:]
		want = append(want, int32(slices.Index(last, slices.Max(last))))
	}
	line := []string{"--model", path, "--ids", "--prompt", "1", "--tokens", "24"}
	require.Equal(t, want[1:], generateJSON(t, append(line, "--recipe", "none", "--cache", "bf16")...).Tokens)
	require.Equal(t, want[1:9], generateJSON(t, line...).Tokens[:8], "in FP8 a while")
}

func TestGenerateRefuses(t *testing.T) {
	_, dir, _ := byteModel(t)
	with := func(args ...string) []string { return append([]string{"generate", "--model", dir}, args...) }
	fail(t, 2, `required flag(s) "model" not set`, "generate", "--prompt", "a")
	fail(t, 2, "give one of them", with("--prompt", "", "--prompt-file", "x")...)
	fail(t, 2, `want no arguments, there is "x"`, with("x")...)
	fail(t, 2, "use a recipe whose inputs have scales of their own for each token, such as fp8, mxfp8",
		with("--recipe", "te-current", "--batch-invariant", "--prompt", "a")...)
	fail(t, 2, "recipe bf16 rounds values and has no codes", with("--recipe", "bf16")...)
	fail(t, 2, "want e4m3 or bf16", with("--cache", "e5m2")...)
	fail(t, 2, "want a number from 0 to 1", with("--top-p", "1.5")...)
	fail(t, 2, "want a number that is not negative", with("--temperature", "NaN")...)
	fail(t, 1, "--prompt: the prompt is empty", with("--prompt", "")...)
	fail(t, 1, "the prompt has 65 tokens: the context of the model is 64: give a shorter one",
		with("--prompt", strings.Repeat("a", 65))...)
	fail(t, 1, `--prompt: token 1 is "x": want whole numbers`, with("--ids", "--prompt", "1 x")...)
	fail(t, 1, "token 0 of the prompt is 256: the model has those from 0 to 255", with("--ids", "--prompt", "256")...)
	require.NoError(t, os.Remove(filepath.Join(dir, "tokenizer.json")))
	fail(t, 1, "without text give and print IDs of tokens with --ids", with("--prompt", "a")...)
}
