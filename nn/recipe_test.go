package nn

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// firstPass returns a model that trains by a recipe, the loss of its first pass and the
// gradients of it.
func firstPass(t *testing.T, r Recipe) (m *Llama, loss float64, gradients [][]float32) {
	t.Helper()
	cfg := small()
	r.Apply(&cfg, 3)
	m, err := NewLlama(cfg, 1)
	require.NoError(t, err)
	loss = passOn(t, m)
	for _, p := range m.Params() {
		gradients = append(gradients, append([]float32(nil), p.Grad...))
	}
	return m, loss, gradients
}

// passOn does a forward and a backward pass over the same tokens each time.
func passOn(t *testing.T, m *Llama) float64 {
	t.Helper()
	tokens := someTokens(1, 33, m.cfg.Vocab)
	for _, p := range m.Params() {
		clear(p.Grad)
	}
	loss, err := m.Loss(t.Context(), tokens[:32], tokens[1:], 2, 16)
	require.NoError(t, err)
	require.NoError(t, m.Backward(t.Context()))
	m.EndStep()
	return float64(loss)
}

// TestRecipesTrain: gradients of every recipe lead to a lower loss.
func TestRecipesTrain(t *testing.T) {
	for _, r := range Recipes() {
		m, before, _ := firstPass(t, r)
		after := before
		for range 8 {
			squares := 0.0
			for _, p := range m.Params() {
				for _, g := range p.Grad {
					squares += float64(g) * float64(g)
				}
			}
			rate := float32(0.5 / math.Sqrt(squares))
			for _, p := range m.Params() {
				for i, g := range p.Grad {
					p.Value[i] -= rate * g
				}
			}
			after = passOn(t, m)
		}
		require.Less(t, after, 0.8*before, r.Name)
	}
}

// TestPartsTakeEffect: without a part of a recipe with four bits the gradients have other
// bits. Of the forward pass that is so for parts that are of it, and no others.
func TestPartsTakeEffect(t *testing.T) {
	forward := map[Part]bool{PartSquareWeights: true, PartBF16Last: true}
	for name, want := range map[string]int{"mxfp4": 3, "nvfp4": 4, "nvfp4-4over6": 4} {
		r, err := ParseRecipe(name)
		require.NoError(t, err)
		require.Len(t, r.Parts(), want)
		_, loss, gradients := firstPass(t, r)
		for _, p := range r.Parts() {
			less := r.Without(p)
			_, other, without := firstPass(t, less)
			require.False(t, slices.EqualFunc(gradients, without, slices.Equal), less.Name)
			require.Equal(t, forward[p], loss != other, less.Name)
		}
	}
}

// TestSquareWeights: the forward pass and the input gradient multiply by the same values of
// a weight where its blocks are square, and by others where they are not.
func TestSquareWeights(t *testing.T) {
	const out, in = 40, 56
	w := randoms(1, out*in)
	values := func(r scaling.Recipe, w []float32, rows, cols int) []float32 {
		x := &tensor.Tensor{Name: "w", Shape: []int{rows, cols}}
		require.NoError(t, scaling.Quantize(t.Context(), x, w, scaling.Quantizer{Recipe: r}))
		tensor.Dequantize(w, x)
		return w
	}
	for _, name := range []string{"nvfp4", "nvfp4-4over6"} {
		r, err := ParseRecipe(name)
		require.NoError(t, err)
		for _, r := range []Recipe{r, r.Without(PartSquareWeights)} {
			forward := values(r.FP8.Forward.B, append([]float32(nil), w...), out, in)
			backward := flip(values(r.FP8.InputGradient.B, flip(w, out), in, out), in)
			if r.Has(PartSquareWeights) {
				require.Equal(t, forward, backward, r.Name)
			} else {
				require.NotEqual(t, forward, backward, r.Name)
			}
		}
	}
}

// TestFourOverSixRecipe: inputs and weights are under the better of two scales, gradients
// are not.
func TestFourOverSixRecipe(t *testing.T) {
	plain, err := ParseRecipe("nvfp4")
	require.NoError(t, err)
	r, err := ParseRecipe("nvfp4-4over6")
	require.NoError(t, err)
	require.Equal(t, plain.Parts(), r.Parts())
	for i, o := range r.FP8.operands() {
		want := plain.FP8.operands()[i].recipe
		if o.tensor != "gradient" {
			want.Profile = scaling.NVFP4TE4Over6MSE256
		}
		require.Equal(t, want, o.recipe, o.field)
	}
	_, loss, _ := firstPass(t, plain)
	_, other, _ := firstPass(t, r)
	require.NotEqual(t, loss, other)
}

// TestRecipes: every recipe makes a model, and says what it is by its parts.
func TestRecipes(t *testing.T) {
	for _, r := range Recipes() {
		got, err := ParseRecipe(r.Name)
		require.NoError(t, err)
		require.Equal(t, r, got)
		cfg := small()
		r.Apply(&cfg, 7)
		require.NoError(t, cfg.Validate(), r.Name)
		require.Equal(t, r.FP8.Stochastic, cfg.FP8.Seed == 7)
		for _, p := range r.Parts() {
			less := r.Without(p)
			require.False(t, less.Has(p))
			require.Len(t, less.Parts(), len(r.Parts())-1, p)
			require.Equal(t, r.Name+" without "+p.String(), less.Name)
			require.Equal(t, less, less.Without(p), "it is out already")
			require.NoError(t, less.FP8.check())
		}
		require.Empty(t, r.Without(Parts()...).Parts())
		if r.Has(PartSquareWeights) {
			for _, o := range r.Without(PartSquareWeights).FP8.operands() {
				require.Less(t, o.recipe.Block.Rows, 2, "%s, %s", r.Name, o.field)
			}
		}
	}
	_, err := ParseRecipe("nvfp5")
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorContains(t, err, "want one of fp8, mxfp8, mxfp4, nvfp4, nvfp4-4over6, deepseek-v3")
}

// TestNVFP4Recipe is what arXiv 2509.25149 says of its recipe.
func TestNVFP4Recipe(t *testing.T) {
	r, err := ParseRecipe("nvfp4")
	require.NoError(t, err)
	require.Equal(t, []Part{PartHadamard, PartStochastic, PartSquareWeights, PartBF16Last}, r.Parts())
	require.EqualValues(t, 0xD7E8, r.FP8.Signs)
	for _, o := range r.FP8.operands() {
		require.Equal(t, fp8.E2M1, o.recipe.Format)
		rows := 1
		if o.tensor == "weight" {
			rows = 16
		}
		require.Equal(t, rows, o.recipe.Block.Rows, o.field)
		require.Equal(t, 16, o.recipe.Block.Cols, o.field)
		require.Zero(t, o.recipe.Policy)
	}
	for layers, want := range map[int]int{0: 0, 1: 0, 2: 1, 4: 1, 7: 2, 62: 10} {
		cfg := small()
		cfg.Layers = layers
		r.Apply(&cfg, 1)
		require.Equal(t, want, cfg.BF16Last, "%d layers", layers)
	}
}
