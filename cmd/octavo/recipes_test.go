package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/plan"
	"github.com/octavo-fp8/octavo/scaling"
)

// allRecipes are the names that any command may take: of published recipes, of profiles, with
// and without a format, and of plan.
func allRecipes() (all []string) {
	for _, r := range nn.Recipes() {
		all = append(all, r.Name)
	}
	for _, p := range scaling.Profiles() {
		all = append(all, string(p))
	}
	for _, p := range plan.Precisions() {
		if !slices.Contains(all, p.Name) {
			all = append(all, p.Name)
		}
	}
	return append(all, "te-current:e5m2", "mx-rceil:e3m2", "none")
}

// TestRecipesOfCommands gives each recipe to each command, on a file that is not there: it is
// what is missing where the recipe is taken, and otherwise the command says why not.
func TestRecipesOfCommands(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	out := filepath.Join(t.TempDir(), "out")
	commands := map[string][]string{
		"quantize":         {"quantize", missing, "-o", out, "--recipe"},
		"convert":          {"convert", missing, "-o", out, "--to", "bf16", "--recipe"},
		"inspect":          {"inspect", missing, "--recipe"},
		"evaluate":         {"evaluate", missing, "--text", missing, "--recipe"},
		"generate":         {"generate", "--model", missing, "--prompt", "x", "--recipe"},
		"train":            {"train", "--text", missing, "-o", out, "--recipe"},
		"plan":             {"plan", missing + ".json", "--recipe"},
		"verify quantizer": {"verify", "quantizer", missing, "--recipe"},
		"certify":          {"certify", "--layout", "missing", "--recipe"},
		"audit":            {"audit", "--a", "missing", "--b", "missing", "--rtol", "1", "--recipe"},
	}
	// What is refused, by a part of the sentence; all else is taken.
	noHistory := "takes its scale from the amax of earlier steps"
	ofPlan := "is a recipe of plan, and no recipe"
	fourBits := func(name string) bool {
		p, _, _ := strings.Cut(name, ":")
		return strings.HasPrefix(p, "nvfp4-") && name != "nvfp4-4over6" || strings.Contains(p, "fp4-") ||
			slices.Contains([]string{"deepgemm-fp4", "mx-modelopt", "mx-te-pow2", "mx-fouroversix"}, p)
	}
	published := []string{"fp8", "mxfp8", "mxfp4", "nvfp4", "nvfp4-4over6", "deepseek-v3"}
	plans := append(slices.Clone(published), "bf16", "te-current", "octavo", "fp8-serve", "mxfp4-experts", "fp8-rows")
	certified := []string{"fp8", "mxfp8", "te-current", "te-delayed", "none"}
	refused := func(command, name string) string {
		isPlans := slices.Contains([]string{"octavo", "fp8-serve", "mxfp4-experts", "fp8-rows"}, name)
		switch command {
		case "plan":
			switch {
			case slices.Contains(plans, name):
				return ""
			case name == "none":
				return "leave the recipe out"
			}
			return "says how scales are computed, and plan counts bytes"
		case "certify":
			switch {
			case slices.Contains(certified, name):
				return ""
			case isPlans:
				return ofPlan
			}
			return "one of each kind of scales"
		}
		switch {
		case isPlans:
			return ofPlan
		case name == "none" && command != "generate":
			return "leave the recipe out"
		case name == "none", slices.Contains(published, name) && command == "train":
			return ""
		case name == "bf16" && command != "evaluate":
			return "bf16 rounds values and has no codes"
		case command == "train" && fourBits(name):
			return "is not for E4M3: training in four bits"
		case command == "train" && strings.Contains(name, ":"):
			return "gradients to --gradient-format"
		case command != "train" && name == "te-delayed":
			return noHistory
		}
		return ""
	}
	for command, args := range commands {
		for _, name := range allRecipes() {
			var stdout, stderr strings.Builder
			status := run(append(slices.Clone(args), name), strings.NewReader(""), &stdout, &stderr)
			require.NotZero(t, status, "%s %s", command, name)
			want := refused(command, name)
			if want == "" {
				require.NotContains(t, stderr.String(), `"--recipe" flag`, "%s %s", command, name)
				require.Regexp(t, "missing|add --generate", stderr.String(), "%s %s", command, name)
				continue
			}
			require.Contains(t, stderr.String(), `"--recipe" flag`, "%s %s", command, name)
			require.Contains(t, stderr.String(), want, "%s %s", command, name)
			require.Equal(t, exitUsage, status)
		}
	}
}

// TestWhatIsMeant gives flags names of other things.
func TestWhatIsMeant(t *testing.T) {
	evaluate := []string{"evaluate", "x", "--text", "x", "--recipe"}
	to := []string{"convert", "x", "-o", "y", "--to"}
	format := []string{"encode", "--format"}
	for _, c := range []struct {
		args       []string
		name, want string
	}{
		{evaluate, "fp4", "did you mean nvfp4 or mxfp4?"},
		{evaluate, "FP4", "did you mean nvfp4 or mxfp4?"},
		{evaluate, "float8_e4m3fn", "did you mean fp8 or te-current?"},
		{evaluate, "fp6", "did you mean mx-rceil:e3m2 or mx-rceil:e2m3?"},
		{evaluate, "int8", "int8 is of plain integers, which octavo does not quantize to, and no recipe: octavo help recipes lists them"},
		{evaluate, "gptq", "gptq is of plain integers"},
		{evaluate, "NVFP4", `there is no recipe "NVFP4": did you mean nvfp4?`},
		{evaluate, "mxfp9", "did you mean mxfp8 or mxfp4 or mtfp8?"},
		{evaluate, "ct-nvfp4", "ct-nvfp4 is a layout of checkpoints, and no recipe: did you mean nvfp4-compressed-tensors?"},
		{evaluate, "modelopt-nvfp4", "did you mean nvfp4-modelopt or "},
		{evaluate, "gpt-oss", "did you mean mx-rceil or mxfp4 or "},
		{evaluate, "e4m3", "e4m3 is a format of codes, and no recipe: did you mean fp8 or te-current?"},
		{evaluate, "blockwise", "did you mean te-block or deepseek-v3 or fp8?"},
		{evaluate, "llama-3-8b", "llama-3-8b is a model, and no recipe: octavo help recipes"},
		{evaluate, "gibberish", `there is no recipe "gibberish": octavo help recipes lists them`},
		{[]string{"plan"}, "deepseek", "did you mean deepseek-v3 or deepseek-v2?"},
		{[]string{"plan", "deepseek-v3", "--recipe"}, "deepsek-v3", "did you mean deepseek-v3?"},
		{to, "nvfp4", "nvfp4 is a recipe, and no layout: did you mean ct-nvfp4a16 or ct-nvfp4 or modelopt-nvfp4?"},
		{to, "mxfp8", "mxfp8 is a recipe, and no layout: did you mean ct-mxfp8?"},
		{to, "mx-compressed-tensors", "did you mean ct-mxfp8?"},
		{to, "nvfp4-modelopt", "did you mean modelopt-nvfp4?"},
		{to, "vllm", "vllm is a loader, and no layout: did you mean ct-fp8-dynamic or ct-nvfp4 or ct-fp8-block?"},
		{to, "TensorRT_LLM", "did you mean modelopt-fp8 or modelopt-nvfp4?"},
		{to, "gibberish", `there is no layout "gibberish": want one of bf16, f16, f32, deepseek-v3-ue8m0, `},
		{format, "fp8", "fp8 is a recipe: did you mean e4m3?"},
		{format, "nvfp4", "nvfp4 is a recipe: did you mean e2m1?"},
		{format, "int8", "did you mean mxint8?"},
		{[]string{"generate", "--model", "x", "--cache"}, "fp8", "fp8 is a recipe: did you mean e4m3?"},
		{[]string{"train", "--moments"}, "bfloat16", "did you mean bf16?"},
		{[]string{"lab"}, "nvfp4", "nvfp4 is a recipe: did you mean fp4?"},
		{[]string{"certify", "--recipe"}, "blocks", "did you mean fp8?"},
		{[]string{"certify", "--recipe"}, "fp32", "did you mean none?"},
	} {
		fail(t, exitUsage, c.want, append(slices.Clone(c.args), c.name)...)
	}
	require.NotContains(t, octavo(nil, append(evaluate, "mxfp7")...).stderr, "is a recipe")
}

// TestRecipesInLayouts: convert takes a recipe of training where the layout has its blocks and
// format.
func TestRecipesInLayouts(t *testing.T) {
	for _, c := range []struct{ layout, recipe, want string }{
		{"deepseek-v3", "fp8", ""},
		{"deepseek-v3", "deepseek-v3", ""},
		{"ct-mxfp4", "mxfp4", ""},
		{"ct-mxfp8", "mxfp8", ""},
		{"ct-mxfp8", "mxfp4", "recipe mxfp4 encodes to E2M1, layout ct-mxfp8 to E4M3"},
		{"ct-mxfp4", "mx-rceil:e3m2", "encodes to E3M2"},
		{"ct-nvfp4", "nvfp4", "recipe nvfp4 has a scale for 16x16 of a weight, layout ct-nvfp4 for 1x16: nvfp4-te is the same arithmetic"},
		{"ct-fp8-block", "te-current", ""},
		{"ct-fp8", "fp8", "recipe fp8 has a scale for 128x128 of a weight, layout ct-fp8 for tensor: te-block-pow2"},
	} {
		_, err := checkpoint.ParseLayout(c.layout)
		require.NoError(t, err)
		got := octavo(nil, "convert", "missing", "-o", "out", "--to", c.layout, "--recipe", c.recipe).stderr
		if c.want == "" {
			c.want = "missing"
		}
		require.Contains(t, got, c.want, "%s %s", c.layout, c.recipe)
	}
}

// TestRecipesHeld: a recipe is said to be held by a layout where a model can be converted to it with
// that recipe for each linear layer, and what is named in place of others can be.
func TestRecipesHeld(t *testing.T) {
	_, dir, text := byteModel(t) // in F32, so that scales of all types have their place
	c, err := checkpoint.Open(dir)
	require.NoError(t, err)
	defer c.Close()
	converts := func(l *checkpoint.Layout, name string) bool {
		r, err := evaluate.ParseRecipe(name)
		require.NoError(t, err, name)
		o := checkpoint.PlanOptions{Recipes: map[string]*scaling.Recipe{}, Amax: map[string]float32{}}
		for _, w := range c.Weights() {
			// The others have 48 columns, which are not whole blocks of 32.
			if module, ok := strings.CutSuffix(w.Name, ".weight"); ok && strings.HasSuffix(module, "_proj") {
				if o.Amax[module] = 1; !strings.HasSuffix(module, "down_proj") {
					o.Recipes[module] = r.Weight.Recipe
				} else {
					o.Recipes[module] = nil
				}
			}
		}
		_, err = checkpoint.NewPlan(c, l, o)
		return err == nil
	}
	refused := 0
	for _, name := range allRecipes() {
		if _, err := evaluate.ParseRecipe(name); err != nil || name == "bf16" {
			continue
		}
		var want []string
		for _, l := range checkpoint.Layouts() {
			if l.Writable() && converts(l, name) {
				want = append(want, l.Name)
			}
		}
		all, err := vocabulary.Holding([]string{name, "bf16"})
		var got []string
		for _, l := range all {
			got = append(got, l.Name)
		}
		require.Equal(t, want, got, name)
		if len(want) > 0 {
			continue
		}
		refused++
		says := regexp.MustCompile(`^convert has no layout for weights by (\S+): the nearest, (\S+), has (\S+) in place of (\S+)$`).FindStringSubmatch(err.Error())
		require.Len(t, says, 5, err.Error())
		require.Equal(t, []string{name, name}, []string{says[1], says[4]})
		l, err := checkpoint.ParseLayout(says[2])
		require.NoError(t, err)
		require.True(t, converts(l, says[3]), err)
	}
	require.Greater(t, refused, 5)

	none := []string{"evaluate", dir, "--text", text, "--max-tokens", "128", "--layer-tokens", "64", "--recipe"}
	for _, c := range []struct{ recipes, more, says string }{
		{"nvfp4", "", "octavo: note: convert has no layout for weights by nvfp4: the nearest, modelopt-nvfp4, has nvfp4-te in place of nvfp4\n"},
		{"nvfp4-4over6,fp8", "", "the nearest, modelopt-nvfp4, has nvfp4-te-4over6-mse256 in place of nvfp4-4over6\n"},
		{"nvfp4", "--mode activations", ""},
		{"nvfp4-te,mx-rceil", "", ""},
		{"nvfp4-te,bf16", "--budget 12bits", ""},
		{"nvfp4-te,mx-rceil", "--budget 12bits", "by nvfp4-te and mx-rceil together: the nearest, ct-mixed, has nvfp4-compressed-tensors in place of nvfp4-te\n"},
	} {
		r := octavo(nil, append(append(slices.Clone(none), c.recipes, "--progress", "none"), strings.Fields(c.more)...)...)
		require.Zero(t, r.status, r.stderr)
		if c.says == "" {
			require.NotContains(t, r.stderr, "note: ")
		}
		require.Contains(t, r.stderr, c.says)
	}
	out := filepath.Join(t.TempDir(), "out.json")
	budget := func(status int, says, dir, recipes string) {
		t.Helper()
		fail(t, status, says, "evaluate", dir, "--text", text, "--max-tokens", "128", "--layer-tokens", "64", "--budget", "12bits", "--recipe-out", out, "--recipe", recipes)
		require.NoFileExists(t, out)
	}
	budget(2, "--recipe-out: convert has no layout for weights by nvfp4: the nearest, modelopt-nvfp4, has nvfp4-te", dir, "nvfp4,bf16")
	budget(1, "convert cannot write mxfp4 for every linear layer, as --recipe-out needs: tensor \"model.layers.0.mlp.down_proj.weight\": shape [32 48] in ct-mxfp4: 48 columns", dir, "mxfp4,mxfp8")
	budget(1, "is to be BF16, and it is F32: convert the model to bf16 first", dir, "fp8,bf16")
}

// TestFlagsOfNames: whatever lists names in --help says what may have been meant by another.
func TestFlagsOfNames(t *testing.T) {
	free := []string{"exclude", "exclude-a", "exclude-b", "shapes", "activation-budget"} // patterns and numbers
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			kind, _ := pflag.UnquoteUsage(f)
			_, named := f.Value.(oneOf)
			lists := strings.ContainsAny(kind, "|") || strings.Contains(kind, ",...") || kind == "NAME" && f.Value.Type() != "string"
			if lists && !slices.Contains(free, f.Name) {
				require.True(t, named, "%s --%s %s", c.CommandPath(), f.Name, kind)
			}
		})
		for _, child := range c.Commands() {
			visit(child)
		}
	}
	visit(newRoot())
}
