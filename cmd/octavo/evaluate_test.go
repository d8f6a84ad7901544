package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// byteModel writes a model over bytes, and a text of some 5,000.
func byteModel(t *testing.T) (m *nn.Llama, dir, text string) {
	t.Helper()
	m, err := nn.NewLlama(nn.Config{Vocab: 256, Dim: 32, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 48, Context: 64}, 1)
	require.NoError(t, err)
	for i, p := range m.Params() {
		if p.Decay {
			p.Randomize(1, uint64(i), 0.2)
		}
	}
	dir = filepath.Join(t.TempDir(), "model")
	require.NoError(t, hf.Save(t.Context(), m, dir, hf.SaveOptions{Bytes: true}))
	text = filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("to be, or not to be: that is the question. ", 120)), 0o666))
	return m, dir, text
}

// evaluation is what a test reads of the JSON.
type evaluation struct {
	Available, Tokens, Targets, Windows, Vocabulary int

	Perplexity float64
	Warnings   []string
	Results    []struct {
		Recipe, Mode string
		Perplexity   float64
		KL           struct{ Mean float64 }

		LargestKL, LargestLogit struct{ Place int }

		Layers []struct{ Name string }
	}
}

func evaluateJSON(t *testing.T, args ...string) (e evaluation) {
	t.Helper()
	out := succeed(t, append([]string{"evaluate", "--json"}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(out), &e), out)
	return e
}

// TestEvaluate compares perplexities with the model's own loss, and one under a recipe with
// that of the model which convert quantized by the same arithmetic.
func TestEvaluate(t *testing.T) {
	m, dir, text := byteModel(t)
	data, err := os.ReadFile(text)
	require.NoError(t, err)
	var tokens, targets []int32
	for i, b := range data[:257] {
		if i < 256 {
			tokens = append(tokens, int32(b))
		}
		if i > 0 {
			targets = append(targets, int32(b))
		}
	}
	loss, err := m.Evaluate(t.Context(), tokens, targets, 4, 64)
	require.NoError(t, err)
	few := []string{"--text", text, "--max-tokens", "257", "--layer-tokens", "64"}
	e := evaluateJSON(t, append(few, dir, "--recipe", "deepseek,mxfp4", "--recipe", "mxfp8")...)
	require.Equal(t, []int{len(data), 257, 256, 4}, []int{e.Available, e.Tokens, e.Targets, e.Windows})
	require.InEpsilon(t, math.Exp(float64(loss)), e.Perplexity, 1e-6)
	require.Len(t, e.Results, 9)
	require.Equal(t, "deepseek weights", e.Results[0].Recipe+" "+e.Results[0].Mode)
	require.Len(t, e.Results[0].Layers, 2)
	require.Greater(t, e.Results[5].KL.Mean, 5*e.Results[8].KL.Mean, "four bits cost more than eight")

	converted := filepath.Join(t.TempDir(), "converted")
	succeed(t, "convert", dir, "-o", converted, "--to", "deepseek-v3", "--profile", "deepseek")
	got := evaluateJSON(t, append(few, converted)...)
	require.InEpsilon(t, e.Results[0].Perplexity, got.Perplexity, 1e-12)
	require.NotEqual(t, e.Perplexity, got.Perplexity)
	require.Empty(t, got.Results)

	out := succeed(t, append([]string{"evaluate", dir, "--recipe", "mxfp4", "--top", "2", "--mode", "weights,both"}, few...)...)
	for line := range strings.Lines(strings.ReplaceAll(out, dir, "DIR")) {
		require.LessOrEqual(t, len([]rune(line)), 81, line)
	}
	require.Regexp(t, `(?s):\s256\stokens\sof\stext\swere\spredicted,\sin\s4\swindows\sof\s64;\sthe\stext\shas\s\d+\stokens\.
Perplexity in FP32: [\d.]+ ± [\d.]+\n
recipe +quantized +perplexity +change +KL +same top
mxfp4 +weights .*%
mxfp4 +both .*%

mxfp4, both, each alone on 64 tokens:
  E2M1 1x32 mx-rceil
On these tokens layer [01] alone diverges the most, by .*
layer +loss +KL +linear layer +SQNR, dB
 +[01] .*KL of kinds: `, out)
	require.NotContains(t, succeed(t, append([]string{"evaluate", dir, "--recipe", "bf16", "--layer-tokens", "0"}, few[:4]...)...), "alone")
}

// TestEvaluateWorseThanGuessing: random weights are worse than guessing, and a head of zeros, which gives all
// tokens the same probability, tells none from another. One that tells the last token of the vocabulary from
// others, which is not in the text, does.
func TestEvaluateWorseThanGuessing(t *testing.T) {
	m, dir, text := byteModel(t)
	e := evaluateJSON(t, dir, "--text", text, "--max-tokens", "257")
	require.Equal(t, 256, e.Vocabulary)
	require.Greater(t, e.Perplexity, 256.0)
	require.Len(t, e.Warnings, 1)
	require.Contains(t, e.Warnings[0], "Worse than guessing: ")

	clear(m.Param("lm_head.weight").Value)
	even := filepath.Join(t.TempDir(), "even")
	require.NoError(t, hf.Save(t.Context(), m, even, hf.SaveOptions{Bytes: true}))
	for _, tokens := range []string{"2", "3", "100", "257", "5000"} {
		e = evaluateJSON(t, even, "--text", text, "--max-tokens", tokens)
		require.InEpsilon(t, 256, e.Perplexity, 1e-6)
		require.Len(t, e.Warnings, 1)
		require.Contains(t, e.Warnings[0], "The model tells no token from another on this text: it gives all 256 the same probability")
	}
	head := m.Param("lm_head.weight").Value
	for i := len(head) / 256 * 255; i < len(head); i++ {
		head[i] = 1e-3
	}
	told := filepath.Join(t.TempDir(), "told")
	require.NoError(t, hf.Save(t.Context(), m, told, hf.SaveOptions{Bytes: true}))
	e = evaluateJSON(t, told, "--text", text, "--max-tokens", "257")
	require.InEpsilon(t, 256, e.Perplexity, 1e-3)
	for _, w := range e.Warnings { // the perplexity is near that of guessing, on either side
		require.NotContains(t, w, "tells no token")
	}
}

// TestEvaluateTokens gives the same tokens in all forms.
func TestEvaluateTokens(t *testing.T) {
	_, dir, _ := byteModel(t)
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		return path
	}
	want := evaluateJSON(t, dir, "--text", write("text", "ab\nc"))
	require.Equal(t, 4, want.Tokens)
	i32 := filetest.Write(t, nil, filetest.Raw("ids", safetensors.I32, []int{4}, 97, 0, 0, 0, 98, 0, 0, 0, 10, 0, 0, 0, 99, 0, 0, 0))
	i64 := filetest.Write(t, nil, filetest.Raw("input_ids", safetensors.I64, []int{1, 4}, append([]byte{97, 0, 0, 0, 0, 0, 0, 0, 98, 0, 0, 0, 0, 0, 0, 0, 10},
		0, 0, 0, 0, 0, 0, 0, 99, 0, 0, 0, 0, 0, 0, 0)...), filetest.Raw("other", safetensors.I32, []int{1}, 1, 2, 3, 4))
	for _, path := range []string{write("ids", "97 98\n10\t99\n"), write("list", "[97, 98,10 ,99]"), i32, i64} {
		got := evaluateJSON(t, dir, "--tokens", path)
		require.Equal(t, want.Perplexity, got.Perplexity, path)
	}

	ids := write("wrong", "97 98 256 1")
	fail(t, 1, "wrong: token 2 of the text is 256: the model has those from 0 to 255", "evaluate", dir, "--tokens", ids)
	fail(t, 1, "token 1 is \"x\": want whole numbers", "evaluate", dir, "--tokens", write("words", "1 x"))
	fail(t, 1, "token 0 is \"4294967296\"", "evaluate", dir, "--tokens", write("large", "4294967296"))
	fail(t, 1, "1 tokens: at least one must follow another", "evaluate", dir, "--tokens", write("one", "1"))
	fail(t, 1, "0 tensors are I32 or I64", "evaluate", dir, "--tokens", filetest.Write(t, nil, filetest.F32("x", []int{1}, 1)))
	fail(t, 1, `tensor "t": token 0 is -1`, "evaluate", dir, "--tokens",
		filetest.Write(t, nil, filetest.Raw("t", safetensors.I64, []int{1}, 255, 255, 255, 255, 255, 255, 255, 255)))
	fail(t, 1, "without a tokenizer.json give the tokens as IDs with --tokens", "evaluate",
		filetest.Write(t, nil, filetest.F32("x", []int{1}, 1)), "--text", ids)
	fail(t, 2, "want a text to evaluate the model on", "evaluate", dir)
	fail(t, 2, "one of them", "evaluate", dir, "--tokens", ids, "--text", ids)
	fail(t, 2, "want one model", "evaluate", "--tokens", ids)
	fail(t, 2, "use te-current", "evaluate", dir, "--tokens", ids, "--recipe", "fp8,te-delayed")
	fail(t, 2, "unknown mode", "evaluate", dir, "--tokens", ids, "--mode", "gradients")
	fail(t, 1, "a context of 65: it must be at most 64", "evaluate", dir, "--tokens", ids, "--context", "65")
	fail(t, 1, "Stride is 9", "evaluate", dir, "--tokens", write("few", "1 2"), "--context", "8", "--stride", "9")
	for _, html := range []string{ids, filepath.Join(dir, "model.safetensors"), filepath.Join(dir, "tokenizer.json")} {
		fail(t, 2, "are the same file", "evaluate", dir, "--tokens", ids, "--html", html)
	}
}

// TestEvaluateStories evaluates a real model on its own text.
func TestEvaluateStories(t *testing.T) {
	model := testutil.Shared(t, "data", "stories260K.safetensors")
	tokens := testutil.Shared(t, "data", "stories260K_activations.safetensors")
	e := evaluateJSON(t, model, "--tokens", tokens, "--recipe", "bf16,fp8,mxfp4", "--mode", "both", "--layer-tokens", "0")
	require.InEpsilon(t, storiesPerplexity(t, tokens), e.Perplexity, 1e-5)
	for i := 1; i < len(e.Results); i++ {
		require.Greater(t, e.Results[i].KL.Mean, 3*e.Results[i-1].KL.Mean, e.Results[i].Recipe)
	}
}

// storiesPerplexity computes the perplexity from the logits that came with the model.
func storiesPerplexity(t *testing.T, path string) float64 {
	file, err := safetensors.Open(path)
	require.NoError(t, err)
	defer file.Close()
	logits, err := file.Float32s("logits")
	require.NoError(t, err)
	tokens, err := file.Bytes("tokens")
	require.NoError(t, err)
	n := len(tokens) / 4
	vocab := len(logits) / n
	loss := 0.0
	for i := range n - 1 {
		row, sum := logits[i*vocab:(i+1)*vocab], 0.0
		for _, x := range row {
			sum += math.Exp(float64(x))
		}
		target := int(tokens[4*i+4]) | int(tokens[4*i+5])<<8
		loss += math.Log(sum) - float64(row[target])
	}
	return math.Exp(loss / float64(n-1))
}

// TestEvaluateBudget finds recipes for a budget, converts the model by them, and wants what was
// predicted of the result: the same loss, to the bit, and as many bits in the files.
func TestEvaluateBudget(t *testing.T) {
	m, err := nn.NewLlama(nn.Config{Vocab: 256, Dim: 32, Layers: 3, Heads: 4, KVHeads: 2, Hidden: 64, Context: 32}, 1)
	require.NoError(t, err)
	for i, p := range m.Params() {
		if p.Decay {
			p.Randomize(1, uint64(i), 0.2)
		}
	}
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	require.NoError(t, hf.Save(t.Context(), m, path("f32"), hf.SaveOptions{Bytes: true}))
	succeed(t, "convert", path("f32"), "-o", path("model"), "--to", "bf16")
	text := strings.Repeat("to be, or not to be: that is the question. ", 12)
	require.NoError(t, os.WriteFile(path("text"), []byte(text), 0o666))
	require.NoError(t, os.WriteFile(path("rest"), []byte(text[128:]), 0o666))
	line := []string{"evaluate", path("model"), "--text", path("text"), "--layer-tokens", "128", "--budget", "6bits", "--recipe-out", path("recipes.json"),
		"--recipe", "nvfp4-compressed-tensors,mx-floor,bf16"}
	var found struct {
		Results []struct {
			Recipe string
			Loss   struct{ Mean float64 }

			LargestKL, LargestLogit struct{ Place int }
		}
		Budget struct {
			Bits        float64
			Sensitivity struct{ Tokens, LayerTargets int }
			Chosen      []struct{ Name, Recipe string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(succeed(t, append(line, "--json")...)), &found))
	require.Equal(t, []int{128, 127}, []int{found.Budget.Sensitivity.Tokens, found.Budget.Sensitivity.LayerTargets})
	require.LessOrEqual(t, found.Budget.Bits, 6.0)
	require.Len(t, found.Results, 4)
	require.Equal(t, "mixed", found.Results[3].Recipe)
	used := map[string]bool{}
	for _, c := range found.Budget.Chosen {
		used[c.Recipe] = true
	}
	require.Greater(t, len(used), 1, "the recipes of this test are mixed")
	out := succeed(t, append(line, "--html", path("page.html"))...)
	page, err := os.ReadFile(path("page.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "by what layers cost on the 128 tokens before")
	require.Contains(t, string(page), "bits a weight fits into 6.")
	require.Regexp(t, `(?s)A mixed recipe of [\d.]+ bits a weight fits into 6\..*chosen\sby\swhat\slayers\scost\son\sthe\s128\stokens\sbefore`, out)

	succeed(t, "convert", path("model"), "-o", path("mixed"), "--to", "ct-mixed", "--recipe-file", path("recipes.json"))
	var got evaluationLoss
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "evaluate", "--json", path("mixed"), "--text", path("rest"))), &got))
	require.Equal(t, found.Results[3].Loss.Mean, got.Loss.Mean)
	require.NotEqual(t, got.Loss.Mean, found.Results[0].Loss.Mean)
	c, err := checkpoint.Open(path("mixed"))
	require.NoError(t, err)
	defer c.Close()
	bits, weights := int64(0), int64(0)
	for _, w := range c.Weights() {
		if strings.HasSuffix(w.Name, "_proj.weight") {
			bits += 8 * w.Bytes()
			weights += w.Len()
		}
	}
	require.InDelta(t, float64(bits)/float64(weights), found.Budget.Bits, 1e-12)
	again := evaluateJSON(t, path("model"), "--text", path("rest"), "--recipe-file", path("recipes.json"), "--mode", "weights", "--layer-tokens", "0")
	require.Equal(t, "mixed", again.Results[0].Recipe)
	require.Equal(t, found.Results[3].LargestKL.Place, 128+again.Results[0].LargestKL.Place)
	require.Equal(t, found.Results[3].LargestLogit.Place, 128+again.Results[0].LargestLogit.Place)
	require.InEpsilon(t, math.Exp(got.Loss.Mean), again.Results[0].Perplexity, 1e-12)

	recipes, err := os.ReadFile(path("recipes.json"))
	require.NoError(t, err)
	changed := func(old, new string) string {
		text := strings.Replace(string(recipes), old, new, 1)
		require.NotEqual(t, string(recipes), text)
		require.NoError(t, os.WriteFile(path("changed.json"), []byte(text), 0o666))
		return path("changed.json")
	}
	convert := []string{"convert", path("model"), "-o", path("none"), "--to", "ct-mixed", "--recipe-file"}
	fail(t, 1, "model.layers.0.mlp.gate_proj.weight is [64 33] there and [64 32] in the model", append(convert, changed("64,\n        32", "64,\n        33"))...)
	fail(t, 1, "model.layers.0.mlp.gate_proj is [64 33] there and [64 32] in the model", "evaluate", path("model"), "--text", path("text"), "--recipe-file", path("changed.json"))
	fail(t, 1, `tensor "model.layers.0.mlp.down_proj.weight": there is no recipe for it among those of modules`, append(convert, changed("layers.0.mlp.down_proj", "layers.7.mlp.down_proj"))...)
	fail(t, 1, "module model.layers.7.mlp.down_proj is none of the model's", "evaluate", path("model"), "--text", path("text"), "--recipe-file", path("changed.json"))
	fail(t, 1, "it has version 3: want 1", append(convert, changed(`"version": 1`, `"version": 3`))...)
	fail(t, 1, "is to be BF16, and it is F32: convert the model to bf16 first", "convert", path("f32"), "-o", path("none"), "--to", "ct-mixed", "--recipe-file", changed("nvfp4-compressed-tensors", "bf16"))
	fail(t, 1, "does not have E4M3 in blocks of 1x32 by mx-floor", "convert", path("model"), "-o", path("none"), "--to", "deepseek-v3", "--recipe-file", path("recipes.json"))
	fail(t, 2, "--only is for a model without --recipe-file", append(convert, path("recipes.json"), "--only", "q_proj")...)
	require.NoDirExists(t, path("none"))

	for says, args := range map[string][]string{
		"want bits a weight":                {"--budget", "x"},
		"above 0 and at most 32":            {"--budget", "33bits"},
		"wants recipes to choose among":     {"--budget", "5", "--recipe", "fp8"},
		"for one --mode, weights or both":   {"--budget", "5", "--recipe", "fp8,bf16", "--mode", "activations"},
		"leave out --layer-tokens 0":        {"--budget", "5", "--recipe", "fp8,bf16", "--layer-tokens", "0"},
		"--recipe-out is for what --budget": {"--recipe-out", path("x")},
		"give one of them":                  {"--budget", "5", "--recipe-file", path("recipes.json")},
		"none are left to judge by":         {"--budget", "5", "--recipe", "fp8,bf16"},
		"are the same file":                 {"--budget", "5", "--recipe", "fp8,bf16", "--recipe-out", path("text")},
	} {
		fail(t, 2, says, append([]string{"evaluate", path("model"), "--text", path("text")}, args...)...)
	}
	// A file that cannot be written is told of before the model is read, which there is none of here.
	none := []string{"evaluate", path("none"), "--text", path("text"), "--budget", "5", "--recipe", "fp8,bf16", "--recipe-out"}
	fail(t, 1, "name another file with --recipe-out", append(none, filepath.Join(path("none"), "x"))...)
	fail(t, 2, "--html and --recipe-out name the same file", append(none, path("x"), "--html", folder+"/./x")...)
	require.NoFileExists(t, path("x"))
	fail(t, 1, "5 bits a weight are too few: these recipes take at least", "evaluate", path("model"), "--text", path("text"), "--layer-tokens", "64", "--budget", "5", "--recipe", "fp8,bf16")
}

// TestEvaluatePredicts: what is found of weights in NVFP4 is, to the bit, the loss of what convert
// writes in each layout that can hold them, where those that loaders fuse share an outer scale.
func TestEvaluatePredicts(t *testing.T) {
	folder := t.TempDir()
	ids := filepath.Join(folder, "ids.json")
	require.NoError(t, os.WriteFile(ids, []byte(strings.Join(strings.Fields(fmt.Sprint(someIDs(300, 320))), ",")), 0o666))
	lossOf := func(args ...string) float64 {
		var got evaluationLoss
		require.NoError(t, json.Unmarshal([]byte(succeed(t, append(args, "--tokens", ids, "--json")...)), &got))
		return got.Loss.Mean
	}
	for _, name := range []string{"llama", "phi3", "mixtral", "qwen3-moe"} {
		model := testutil.Shared(t, "models", name)
		plain, layouts := lossOf("evaluate", model), 0
		for _, l := range checkpoint.Layouts() {
			for _, recipe := range []string{"nvfp4-te", "nvfp4-modelopt", "nvfp4-compressed-tensors", "nvfp4-te-4over6-mse256"} {
				if !slices.ContainsFunc(l.Rules, func(r checkpoint.Rule) bool {
					return r.Scheme.ScaleFormat == tensor.UE4M3Scales && r.Scheme.Divide == (recipe == "nvfp4-compressed-tensors")
				}) {
					continue
				}
				layouts++
				made := filepath.Join(folder, fmt.Sprint(name, layouts))
				args := []string{"convert", model, "-o", made, "--to", l.Name, "--quiet"}
				if l.Calibrated == checkpoint.Calibrated {
					args = append(args, "--tokens", ids)
				}
				if l.Mixed {
					args = append(args, "--recipe-file", recipesFile(t, model, filepath.Join(folder, "recipes.json"), recipe))
				} else {
					args = append(args, "--recipe", recipe)
				}
				succeed(t, args...)
				var found struct {
					Results []struct{ Loss struct{ Mean float64 } }
				}
				require.NoError(t, json.Unmarshal([]byte(succeed(t, "evaluate", model, "--tokens", ids, "--json", "--recipe", recipe, "--mode", "weights", "--layer-tokens", "0")), &found))
				require.Equal(t, lossOf("evaluate", made), found.Results[0].Loss.Mean, "%s %s %s", name, l, recipe)
				require.NotEqual(t, plain, found.Results[0].Loss.Mean)
				text := strings.Join(strings.Fields(succeed(t, "evaluate", made, "--tokens", ids)), " ")
				require.Equal(t, l.Calibrated == checkpoint.Calibrated, strings.Contains(text, "The model has static scales of inputs for "), "%s %s", name, l)
			}
		}
		require.Equal(t, 6, layouts)
	}
}

// someIDs are tokens.
func someIDs(n, vocab int) (ids []int) {
	for i := range n {
		ids = append(ids, (i*i*7+i/3)%vocab)
	}
	return ids
}

// recipesFile writes one recipe for all linear layers of a model.
func recipesFile(t *testing.T, model, path, recipe string) string {
	t.Helper()
	c, err := checkpoint.Open(model)
	require.NoError(t, err)
	defer c.Close()
	modules := evaluate.RecipesOfModules{}
	for _, w := range c.Weights() {
		if module, ok := strings.CutSuffix(w.Name, ".weight"); ok && regexp.MustCompile(`_proj$|\.w\d$`).MatchString(module) {
			modules[module] = evaluate.ModuleRecipe{Recipe: recipe}
		}
	}
	text, err := json.Marshal(evaluate.NewRecipeFile(4.5, evaluate.Weights, modules))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o666))
	return path
}

// TestStageOfAnother: evaluate and convert leave what the other goes on from.
func TestStageOfAnother(t *testing.T) {
	_, dir, text := byteModel(t)
	for left, line := range map[string][]string{
		"model-00001-of-00002.safetensors.done": {"evaluate", dir, "--text", text, "--recipe", "fp8", "--max-tokens", "64", "--layer-tokens", "0", "-o"},
		evaluate.StateName:                      {"convert", dir, "--to", "bf16", "-o"},
	} {
		out := filepath.Join(t.TempDir(), "out")
		file := filepath.Join(out, ".octavo-partial", left)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
		require.NoError(t, os.WriteFile(file, []byte("{}"), 0o666))
		line = append(line, out)
		for _, more := range [][]string{nil, {"--resume"}} {
			fail(t, exitUsage, "cut off", append(line, more...)...)
			require.FileExists(t, file)
		}
		succeed(t, append(line, "--overwrite")...)
		require.NoFileExists(t, file)
	}
}

type evaluationLoss struct{ Loss struct{ Mean float64 } }
