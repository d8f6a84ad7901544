package evaluate

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/nn"
)

// layersOf returns a recipe for each linear layer of the small model.
func layersOf(m *nn.Llama, of func(layer string) Recipe) Recipe {
	r := Recipe{Name: "mixed", Layers: map[string]Recipe{}}
	for _, p := range m.Params() {
		if layer, ok := strings.CutSuffix(p.Name, "_proj.weight"); ok {
			r.Layers[layer+"_proj"] = of(layer)
		}
	}
	return r
}

// TestMixedRun compares losses under a recipe for each linear layer with those of a model whose
// weights were quantized one by one.
func TestMixedRun(t *testing.T) {
	m := smallModel(t, smallConfig())
	tokens := someTokens(37, 23)
	mixed := layersOf(m, func(layer string) Recipe {
		if strings.Contains(layer, "layers.0") {
			return recipe(t, "mxfp8")
		}
		return recipe(t, map[bool]string{true: "mxfp4", false: "fp8"}[strings.HasSuffix(layer, "down")])
	})
	o := Options{Recipes: []Recipe{mixed, recipe(t, "mxfp4")}, Modes: []Mode{Weights}, Context: plainLength + 1, Prefix: []int32{plainPrefix}}
	report, err := Run(t.Context(), m, tokens, o)
	require.NoError(t, err)
	other := copyOf(t, m, m.Config(), func(weight string, w []float32, cols int) {
		decode(t, *mixed.Layers[strings.TrimSuffix(weight, ".weight")].Weight.Recipe, w, cols)
	})
	want := plain(t, m, other, tokens)
	requireMean(t, want, func(w plainWindow) float64 { return w.loss }, report.Results[0].Loss)
	require.Len(t, report.Results[0].Layers, 2)
	require.Equal(t, "of the linear layers 6 in fp8, 1 in mxfp4, 7 in mxfp8", report.Results[0].Operands)

	// Differences window by window, of what was seen above to be right.
	worse := plain(t, m, copyOf(t, m, m.Config(), func(_ string, w []float32, cols int) {
		decode(t, *recipe(t, "mxfp4").Weight.Recipe, w, cols)
	}), tokens)
	for i := range want {
		want[i].loss -= worse[i].loss
		want[i].kl -= worse[i].kl
	}
	loss, kl := report.Results[0].Against(&report.Results[1])
	requireMean(t, want, func(w plainWindow) float64 { return w.loss }, loss)
	requireMean(t, want, func(w plainWindow) float64 { return w.kl }, kl)
}

// TestBits counts by hand: of each block q and o are 16x16, k and v 8x16, gate and up 40x16, down
// 16x40.
func TestBits(t *testing.T) {
	m := smallModel(t, smallConfig())
	const weights = 2*16*16 + 2*8*16 + 3*40*16
	squares := float64(2*1 + 2*1 + 3*1) // of 128x128
	for name, want := range map[string]float64{
		"bf16": 16 * weights, "fp8": 8*weights + 32*squares,
		"mxfp4":           4*weights + 8*(2*16+2*8+2*40+16*2),                         // blocks of 1x32: a row of 40 has two
		"mx-floor:e3m2":   6*weights + 8*(2*16+2*8+2*40+16*2),                         //
		"torchao-rowwise": 8*weights + 32*(2*16+2*8+2*40+16),                          //
		"nvfp4-modelopt":  4*weights + 8*(2*16+2*8+2*40+16*3) + 7*32,                  // blocks of 1x16
		"nvfp4":           4*weights + 8*(1+1+1+1+3+3+3) + 7*32,                       // blocks of 16x16
		"nvfp4-te-row":    4*weights + 8*(2*16+2*8+2*40+16*3) + 32*(2*16+2*8+2*40+16), // and one of FP32 a row
		"te-current":      8*weights + 32*7,                                           //
	} {
		got, err := Bits(m, recipe(t, name))
		require.NoError(t, err)
		require.InDelta(t, want/weights, got, 1e-12, name)
	}
	dozens := recipe(t, "nvfp4-te-row") // 16 rows are under 2 outer scales, 40 under 4
	dozens.Weight.Recipe.OuterRows = 12
	got, err := Bits(m, dozens)
	require.NoError(t, err)
	require.InDelta(t, (4*weights+8*(2*16+2*8+2*40+16*3)+32*(2*2+2*1+2*4+2.0))/weights, got, 1e-12)
	half := layersOf(m, func(layer string) Recipe {
		return recipe(t, map[bool]string{true: "bf16", false: "te-current"}[strings.Contains(layer, "layers.1")])
	})
	got, err = Bits(m, half)
	require.NoError(t, err)
	require.InDelta(t, (16.0*weights+8*weights+32*7)/(2*weights), got, 1e-12)
}

// TestMix compares with all choices there are, by costs from the documentation.
func TestMix(t *testing.T) {
	m := smallModel(t, smallConfig())
	tokens := someTokens(60, 23)
	recipes := []Recipe{recipe(t, "mxfp4"), recipe(t, "mxfp8"), recipe(t, "bf16")}
	e, err := Run(t.Context(), m, tokens, Options{Recipes: recipes, Modes: []Mode{Weights}, Context: 8})
	require.NoError(t, err)
	together := func(layer string) string { // three units a layer, so that all choices are 3^6
		before, last, _ := strings.Cut(strings.TrimPrefix(layer, "model.layers."), ".")
		if strings.HasSuffix(last, "down_proj") {
			return before + "down"
		}
		return before + strings.Split(last, ".")[0]
	}
	sizes := map[string]int{"q": 256, "o": 256, "k": 128, "v": 128, "gate": 640, "up": 640, "down": 640}
	blocks := map[string]int{"q": 16, "o": 16, "k": 8, "v": 8, "gate": 40, "up": 40, "down": 32}
	type choice struct{ bits, cost float64 }
	units := map[string][]choice{}
	for layer := range layersOf(m, func(string) Recipe { return Recipe{} }).Layers {
		parts := strings.Split(strings.TrimSuffix(layer, "_proj"), ".")
		number, kind := int(parts[2][0]-'0'), parts[4]
		key := together(layer)
		if units[key] == nil {
			units[key] = make([]choice, 3)
		}
		for i := range recipes {
			of := e.Results[i]
			all, own := 0.0, 0.0
			for _, k := range of.Kinds {
				all += float64(k.KL.Mean)
				if k.Name == kind+"_proj" {
					own = float64(k.KL.Mean)
				}
			}
			units[key][i].cost += float64(of.Layers[number].KL.Mean) * own / all
			units[key][i].bits += []float64{4*float64(sizes[kind]) + 8*float64(blocks[kind]), 8*float64(sizes[kind]) + 8*float64(blocks[kind]), 16 * float64(sizes[kind])}[i]
		}
	}
	require.Len(t, units, 6)
	keys := slices.Sorted(maps.Keys(units))
	for _, bits := range []float64{4.6, 5, 6.5, 9, 12, 20} {
		best := math.Inf(1)
		for code := range 729 {
			var all choice
			for _, key := range keys {
				c := units[key][code%3]
				code /= 3
				all.bits += c.bits
				all.cost += c.cost
			}
			if all.bits <= bits*5376 {
				best = min(best, all.cost)
			}
		}
		mixed, err := Mix(t.Context(), m, e, MixOptions{Recipes: recipes, Mode: Weights, Bits: bits, Together: together})
		require.NoError(t, err)
		took, err := Bits(m, mixed)
		require.NoError(t, err)
		require.LessOrEqual(t, took, bits)
		cost := 0.0
		seen := map[string]string{}
		for layer, r := range mixed.Layers {
			key := together(layer)
			if seen[key] == "" {
				seen[key] = r.Name
				cost += units[key][slices.IndexFunc(recipes, func(of Recipe) bool { return of.Name == r.Name })].cost
			}
			require.Equal(t, seen[key], r.Name)
		}
		require.InEpsilon(t, 1+best, 1+cost, 1e-8, bits)
		require.Greater(t, cost, best-1e-12)
	}

	_, err = Mix(t.Context(), m, e, MixOptions{Recipes: recipes, Mode: Weights, Bits: 4.2})
	require.ErrorIs(t, err, ErrOptions)
	require.ErrorContains(t, err, "4.2 bits a weight are too few: these recipes take at least 4.477")
	_, err = Mix(t.Context(), m, e, MixOptions{Recipes: recipes, Mode: Both, Bits: 5})
	require.ErrorContains(t, err, `no layers alone under "mxfp4", both`)

	// Where a layer's logits are not finite under a recipe, it is not chosen there.
	e.Results[0].Layers[1].KL.Mean = jsonfloat.Number(math.NaN())
	mixed, err := Mix(t.Context(), m, e, MixOptions{Recipes: recipes, Mode: Weights, Bits: 20})
	require.NoError(t, err)
	for layer, r := range mixed.Layers {
		require.False(t, strings.Contains(layer, "layers.1") && r.Name == "mxfp4", layer)
	}
	_, err = Mix(t.Context(), m, e, MixOptions{Recipes: recipes[:1], Mode: Weights, Bits: 20})
	require.ErrorContains(t, err, "has no recipe under which logits are finite")
}

func TestMixedRefused(t *testing.T) {
	m := smallModel(t, smallConfig())
	for says, change := range map[string]func(r Recipe){
		"has none for model.layers.1.mlp.up_proj": func(r Recipe) { delete(r.Layers, "model.layers.1.mlp.up_proj") },
		`"model.layers.2.mlp.up_proj", which is no linear layer`: func(r Recipe) {
			r.Layers["model.layers.2.mlp.up_proj"] = recipe(t, "fp8")
		},
		"is one for each linear layer": func(r Recipe) { r.Layers["model.layers.1.mlp.up_proj"] = r },
	} {
		r := layersOf(m, func(string) Recipe { return recipe(t, "fp8") })
		change(r)
		_, err := Run(t.Context(), m, someTokens(9, 23), Options{Recipes: []Recipe{r}})
		require.ErrorIs(t, err, ErrOptions)
		require.ErrorContains(t, err, says)
	}
}

const recipeFile = `{"version":1,"bits":4.5,"mode":"weights","modules":{"a.up_proj":{"recipe":"mxfp4","shape":[8,32]},"b":{"recipe":"bf16"}}}`

func TestRecipeFile(t *testing.T) {
	f, err := ParseRecipeFile([]byte(recipeFile))
	require.NoError(t, err)
	require.Equal(t, NewRecipeFile(4.5, Weights, RecipesOfModules{"a.up_proj": {"mxfp4", []int{8, 32}}, "b": {Recipe: "bf16"}}), f)
	text, err := json.Marshal(f)
	require.NoError(t, err)
	require.JSONEq(t, recipeFile, string(text))
	for says, change := range map[string][2]string{
		"it has version 2: want 1":             {`"version":1`, `"version":2`},
		"it has version 0":                     {`"version":1,`, ``},
		`unknown field "model"`:                {`"bits"`, `"model"`},
		`module "b": json: unknown field "x"`:  {`"bf16"}`, `"bf16","x":1}`},
		`module "b" is there twice`:            {`"b":{`, `"b":{"recipe":"fp8"},"b":{`},
		`module "b": evaluate: there is no re`: {`bf16`, `bf17`},
		"want an object of recipes":            {`{"a.up_proj":{"recipe":"mxfp4","shape":[8,32]},"b":{"recipe":"bf16"}}`, `null`},
		"it has no modules":                    {`{"a.up_proj":{"recipe":"mxfp4","shape":[8,32]},"b":{"recipe":"bf16"}}`, `{}`},
		`shape [0 32] has a size below 1`:      {`[8,`, `[0,`},
		"something follows the object":         {`}}}`, `}}} {}`},
		"unexpected EOF":                       {`}}}`, `}`},
		"unknown mode":                         {`weights`, `gradients`},
	} {
		_, err := ParseRecipeFile([]byte(strings.Replace(recipeFile, change[0], change[1], 1)))
		require.ErrorIs(t, err, ErrOptions, says)
		require.ErrorContains(t, err, says)
	}
}

func FuzzRecipeFile(f *testing.F) {
	f.Add([]byte(recipeFile))
	f.Add([]byte(`{"version":1,"modules":{"":{"recipe":"te-delayed"}}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := ParseRecipeFile(data)
		if err != nil {
			require.ErrorIs(t, err, ErrOptions)
			return
		}
		text, err := json.Marshal(file)
		require.NoError(t, err)
		again, err := ParseRecipeFile(text)
		require.NoError(t, err)
		require.Equal(t, len(file.Modules), len(again.Modules))
	})
}
