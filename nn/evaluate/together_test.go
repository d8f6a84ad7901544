package evaluate

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTogether compares a run in which weights share an outer scale with one of a model whose
// weights were quantized as one matrix, one above the other.
func TestTogether(t *testing.T) {
	m := smallModel(t, smallConfig())
	m.Param("model.layers.1.mlp.up_proj.weight").Value[3] = 40
	groups := [][]string{{"q_proj", "k_proj", "v_proj"}, {"gate_proj", "up_proj"}}
	together := func(layer string) string {
		dot := strings.LastIndexByte(layer, '.') + 1
		for _, g := range groups {
			if slices.Contains(g, layer[dot:]) {
				return layer[:dot] + g[0]
			}
		}
		return layer
	}
	tokens := someTokens(37, 23)
	for _, name := range []string{"nvfp4-te", "nvfp4-modelopt", "nvfp4-compressed-tensors"} {
		r := recipe(t, name)
		mixed := layersOf(m, func(layer string) Recipe {
			return recipe(t, map[bool]string{true: name, false: "bf16"}[strings.Contains(layer, "layers.1")])
		})
		o := Options{Recipes: []Recipe{r, mixed}, Modes: []Mode{Weights, Both}, Context: plainLength + 1, Prefix: []int32{plainPrefix}, Together: together}
		report, err := Run(t.Context(), m, tokens, o)
		require.NoError(t, err)
		whole := map[string][]float32{} // of the layers that are together
		for _, p := range m.Params() {
			if layer, ok := strings.CutSuffix(p.Name, ".weight"); ok && strings.HasSuffix(layer, "_proj") {
				whole[together(layer)] = append(whole[together(layer)], p.Value...)
			}
		}
		for layer, w := range whole {
			decode(t, *r.Weight.Recipe, w, m.Param(layer+".weight").Cols)
		}
		got := copyOf(t, m, m.Config(), func(weight string, w []float32, _ int) {
			layer := together(strings.TrimSuffix(weight, ".weight"))
			copy(w, whole[layer])
			whole[layer] = whole[layer][len(w):]
		})
		want := plain(t, m, got, tokens)
		requireMean(t, want, func(w plainWindow) float64 { return w.loss }, report.Results[0].Loss)
		o.Together = nil
		alone, err := Run(t.Context(), m, tokens, o)
		require.NoError(t, err)
		for i, of := range alone.Results { // each recipe in each mode
			require.NotEqual(t, of.Loss, report.Results[i].Loss, "%s %v", of.Recipe, of.Mode)
		}
	}
}

// TestTogetherOfZeros: weights of zeros stay zeros, as files have them.
func TestTogetherOfZeros(t *testing.T) {
	m := smallModel(t, smallConfig())
	for _, p := range m.Params() {
		if strings.HasSuffix(p.Name, "o_proj.weight") {
			copy(p.Value, make([]float32, len(p.Value)))
		}
	}
	o := Options{Recipes: []Recipe{recipe(t, "nvfp4-modelopt")}, Modes: []Mode{Weights}, Context: 8, Together: func(layer string) string { return layer }}
	report, err := Run(t.Context(), m, someTokens(20, 23), o)
	require.NoError(t, err)
	require.Zero(t, report.Results[0].NonFinite)
	require.False(t, math.IsNaN(float64(report.Results[0].Loss.Mean)))
}

// TestTogetherQuantized: weights that stay as they are have no part in the outer scale of others.
func TestTogetherQuantized(t *testing.T) {
	m := smallModel(t, smallConfig())
	m.Param("model.layers.1.mlp.up_proj.weight").Value[3] = 40
	mixed := layersOf(m, func(layer string) Recipe {
		return recipe(t, map[bool]string{true: "nvfp4-modelopt", false: "bf16"}[strings.HasSuffix(layer, "gate")])
	})
	o := Options{Recipes: []Recipe{mixed}, Modes: []Mode{Weights}, Context: 8}
	alone, err := Run(t.Context(), m, someTokens(20, 23), o)
	require.NoError(t, err)
	o.Together = func(layer string) string { return strings.Replace(layer, "up_proj", "gate_proj", 1) }
	together, err := Run(t.Context(), m, someTokens(20, 23), o)
	require.NoError(t, err)
	require.Equal(t, alone.Results[0].Loss, together.Results[0].Loss)
}
