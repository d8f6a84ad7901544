package agree_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/judge/agree"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// coded is what a recipe makes of a matrix.
func coded(t *testing.T, r *scaling.Recipe, x []float32, rows, cols int) *tensor.Tensor {
	out := &tensor.Tensor{Shape: []int{rows, cols}}
	require.NoError(t, scaling.Quantize(t.Context(), out, x, scaling.Quantizer{Recipe: *r}))
	return out
}

// shuffled adds in float32, in a random order, codes times their scales.
func shuffled(r *rand.Rand, a, b *tensor.Tensor, bias []float32, round func(float32) float32) (out []float32) {
	m, k := a.Dims()
	n, _ := b.Dims()
	order := r.Perm(k)
	for i := range m {
		for j := range n {
			sum := float32(0)
			for _, at := range order {
				sum += float32(a.At(i, at) * b.At(j, at))
			}
			if bias != nil {
				sum += bias[j]
			}
			out = append(out, round(sum))
		}
	}
	return out
}

// TestHonestRecipes accuses no engine that computes what it claims, in any recipe that is
// recomputed, with weights that are stored as codes or as values, and with a bias. Nor is the
// claim of bf16 right of them, but where codes have all of the values.
func TestHonestRecipes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 6))
	judged := 0
	for _, recipe := range recipes() {
		if recipe.Input == nil {
			continue
		}
		s := shape{6 + r.IntN(6), 100 + r.IntN(90), 200 + r.IntN(120), []agree.Type{agree.F32, agree.BF16}[r.IntN(2)]}
		x, w, bias := bell(r, s.m*s.k, 3), bell(r, s.n*s.k, 0.1), bell(r, s.n, 1)
		for i := range x {
			if i%97 == 0 {
				x[i] = bf16(x[i] * 40)
			}
		}
		a, b := coded(t, recipe.Input, x, s.m, s.k), coded(t, recipe.Weight, w, s.n, s.k)
		out := shuffled(r, a, b, bias, s.round())
		amax, _ := fp8.Amax(w)
		kept := agree.Weight{Rows: s.n, Cols: s.k, Codes: b, Values: dequantized(b), Amax: func() (float32, error) { return amax, nil }}
		for _, weight := range []agree.Weight{kept, values(w, s.n, s.k)} {
			l := &agree.Layer{
				Tokens: s.m, Input: x, InputOf: agree.BF16, Output: out, Of: s.of, Bias: bias, Weight: weight, Passes: []int{s.m},
			}
			v, err := agree.Check(t.Context(), l, agree.Claim{Recipe: recipe}, agree.Options{Recipes: recipes()})
			require.NoError(t, err, recipe.Name)
			require.Equal(t, "right", v.Word(), "%s: %s", recipe.Name, strings.Join(v.Causes(), "\n"))
			require.Positive(t, v.Looked)
			judged++

			v, err = agree.Check(t.Context(), l, agree.Claim{Recipe: agree.Recipe{Name: "bf16"}}, agree.Options{Recipes: recipes()})
			require.NoError(t, err, recipe.Name)
			require.Equal(t, "wrong", v.Word(), recipe.Name)
			found := false
			for _, e := range v.Explained {
				input, _ := e.Treatments()
				found = found || input.Quantized && input.Recipe == *recipe.Input
			}
			require.True(t, found, "%s: %s", recipe.Name, strings.Join(v.Causes(), "\n"))
		}
		l := &agree.Layer{Tokens: s.m, Input: x, InputOf: agree.BF16, Output: shuffled(r, a, b, nil, s.round()), Of: s.of, Bias: bias, Weight: kept}
		v, err := agree.Check(t.Context(), l, agree.Claim{Recipe: recipe}, agree.Options{Recipes: recipes()})
		require.NoError(t, err)
		require.Equal(t, "wrong", v.Word(), recipe.Name)
		require.Contains(t, v.Causes()[0], "the bias is not added", recipe.Name)
	}
	require.Greater(t, judged, 80)
}

// TestUnusual has inputs that are not finite, zeros, sums that may overflow, and parts that do
// not fit together.
func TestUnusual(t *testing.T) {
	s := shape{5, 40, 64, agree.F32}
	r := rand.New(rand.NewPCG(5, 5))
	x, w := bell(r, s.m*s.k, 1), bell(r, s.n*s.k, 1)
	product := func() []float32 { return sums{plain(x, s.k), plain(w, s.k)}.product(s.m, s.n, s.k, same) }
	x[s.k] = float32(math.NaN())
	x[2*s.k] = float32(math.Inf(1))
	out := product()
	require.Equal(t, "right", check(t, s, x, out, values(w, s.n, s.k), "bf16").Word())
	for j := range s.n {
		out[s.n+j] = 0
	}
	require.Equal(t, "wrong", check(t, s, x, out, values(w, s.n, s.k), "bf16").Word(), "a NaN is lost")

	clear(x)
	require.Equal(t, "right", check(t, s, x, product(), values(w, s.n, s.k), "deepgemm").Word())
	for i := range x {
		x[i] = bf16(float32(1e38 * r.NormFloat64()))
	}
	out = product()
	v := check(t, s, x, out, values(w, s.n, s.k), "bf16")
	require.Equal(t, "undecided", v.Word())
	require.Contains(t, v.Causes()[0], "no bound")

	for _, l := range []*agree.Layer{
		{},
		{Tokens: 1, Weight: values(w, s.n, s.k), Input: x[:3], Output: out[:s.n]},
		{Tokens: 1, Weight: values(w, s.n, s.k), Input: x[:s.k], Output: out[:3]},
		{Tokens: 1, Weight: values(w, s.n, s.k), Input: x[:s.k], Output: out[:s.n], Bias: out[:3]},
		{Tokens: 1, Weight: values(w, s.n, s.k), Input: x[:s.k], Output: out[:s.n], Passes: []int{2}},
		{Tokens: 1, Weight: values(w, s.n, s.k), Input: x[:s.k], Output: out[:s.n], Passes: []int{-1, 2}},
	} {
		_, err := agree.Check(t.Context(), l, agree.Claim{}, agree.Options{})
		require.ErrorIs(t, err, agree.ErrLayer)
	}
	delayed := scaling.TEDelayed.Recipe(scaling.Input)
	l := &agree.Layer{Tokens: s.m, Weight: values(w, s.n, s.k), Input: x, Output: out}
	_, err := agree.Check(t.Context(), l, agree.Claim{Recipe: agree.Recipe{Name: "te-delayed", Input: &delayed}}, agree.Options{})
	require.ErrorIs(t, err, agree.ErrLayer)
	require.ErrorContains(t, err, "te-delayed is not recomputed")
}

// TestTokensTogether has inputs in blocks of several tokens, which begin with each pass.
func TestTokensTogether(t *testing.T) {
	for n, s := range []shape{{21, 60, 160, agree.BF16}, {150, 33, 97, agree.F32}} {
		r := rand.New(rand.NewPCG(uint64(n), 11))
		x, w := bell(r, s.m*s.k, 1), bell(r, s.n*s.k, 1)
		for i := range x {
			x[i] *= float32(int(1) << (i / s.k % 5))
		}
		const first = 9
		for _, height := range []int{4, 128} {
			qw := quantize(w, s.n, s.k, 128, 128, kept)
			product := func(x []float32, height, width int) []float32 {
				m := len(x) / s.k
				b := quantize(x, m, s.k, height, width, kept)
				scaled := func(i, k int) (float64, float32) { v, scale := b.at(i, k); return v * float64(scale), 1 }
				return sums{scaled, qw.at}.product(m, s.n, s.k, s.round())
			}
			square := scaling.DeepGEMM.Recipe(scaling.Input)
			square.Block = tensor.Block{Rows: height, Cols: 128}
			weight := scaling.DeepGEMM.Recipe(scaling.Weight)
			claim := agree.Claim{Recipe: agree.Recipe{Name: "square", Input: &square, Weight: &weight}}
			l := &agree.Layer{
				Tokens: s.m, Input: x, InputOf: agree.BF16, Of: s.of, Weight: stored(qw), Passes: []int{first, s.m - first},
				Output: append(product(x[:first*s.k], height, 128), product(x[first*s.k:], height, 128)...),
			}
			verdict := func(c agree.Claim) *agree.Verdict {
				v, err := agree.Check(t.Context(), l, c, agree.Options{Recipes: recipes()})
				require.NoError(t, err)
				return v
			}
			v := verdict(claim)
			require.Equal(t, "right", v.Word(), v.Causes())
			require.Zero(t, v.Outside)
			v = verdict(agree.Claim{Recipe: recipe(t, "deepgemm")})
			require.Equal(t, "wrong", v.Word())
			if height == 128 {
				require.Contains(t, strings.Join(v.Causes(), ";"), "input E4M3 128x128 deepgemm")
			}
			l.Passes = nil
			v = verdict(claim)
			require.Equal(t, "undecided", v.Word())
			require.Contains(t, v.Why, "tokens of a pass of the engine share scales")
			l.Passes = []int{first + 1, s.m - first - 1}
			require.Equal(t, "wrong", verdict(claim).Word(), "of other passes")

			l.Passes = []int{s.m} // one with a scale for each token is wrong, and needs no passes
			l.Output = product(x, 1, 128)
			require.Equal(t, "wrong", verdict(claim).Word())
			l.Passes = nil
			require.Equal(t, "right", verdict(agree.Claim{Recipe: recipe(t, "deepgemm")}).Word())
			require.Equal(t, "wrong", verdict(claim).Word(), "explained, whatever the passes")
		}
	}
}

// TestRounded has operands in float32 that an engine rounds to bfloat16, as it claims, and one
// that does not.
func TestRounded(t *testing.T) {
	s := shape{12, 150, 200, agree.F32}
	r := rand.New(rand.NewPCG(2, 4))
	x, w := make([]float32, s.m*s.k), make([]float32, s.n*s.k)
	narrowX, narrowW := make([]float32, len(x)), make([]float32, len(w))
	for i := range x {
		x[i] = float32(r.NormFloat64())
		narrowX[i] = bf16(x[i])
	}
	for i := range w {
		w[i] = float32(r.NormFloat64())
		narrowW[i] = bf16(w[i])
	}
	weight := values(w, s.n, s.k)
	weight.Of = agree.F32
	l := &agree.Layer{Tokens: s.m, Input: x, Of: s.of, Weight: weight}
	claim := agree.Claim{Recipe: agree.Recipe{Name: "bf16", Rounded: agree.BF16}}
	for _, c := range []struct {
		x, w []float32
		want string
	}{{narrowX, narrowW, "right"}, {x, w, "wrong"}} {
		l.Output = sums{plain(c.x, s.k), plain(c.w, s.k)}.product(s.m, s.n, s.k, same)
		v, err := agree.Check(t.Context(), l, claim, agree.Options{Recipes: recipes()})
		require.NoError(t, err)
		require.Equal(t, c.want, v.Word(), v.Causes())
		other := map[string]string{"right": "wrong", "wrong": "right"}[c.want]
		v, err = agree.Check(t.Context(), l, agree.Claim{Recipe: agree.Recipe{Name: "float32"}}, agree.Options{Recipes: recipes()})
		require.NoError(t, err)
		require.Equal(t, other, v.Word(), v.Causes())
		if other == "wrong" {
			require.Contains(t, v.Causes()[0], "an operand is rounded to another type")
		}
	}
}

// TestFarNearer has an engine that leaves its input in float32 where the claim has E4M3: the
// bound of a long sum of positive products allows for both.
func TestFarNearer(t *testing.T) {
	const k, n = 1 << 15, 8
	s := shape{16, n, k, agree.F32}
	r := rand.New(rand.NewPCG(9, 9))
	x, w := make([]float32, s.m*k), make([]float32, n*k)
	for i := range x {
		x[i] = 1 + r.Float32()
	}
	for i := range w {
		w[i] = 1 + float32(r.IntN(2))
	}
	recipe := agree.Recipe{Name: "e4m3", Input: nil}
	out := make([]float32, s.m*n)
	for i := range s.m {
		for j := range n {
			sum := 0.0
			for at := range k {
				sum += float64(x[i*k+at]) * float64(w[j*k+at])
			}
			out[i*n+j] = float32(sum)
		}
	}
	claim := scaling.Recipe{Profile: scaling.TEBlockPow2, Format: fp8.E4M3, Block: tensor.Block{Rows: 1, Cols: 128}}
	recipe.Input = &claim
	l := &agree.Layer{Tokens: s.m, Input: x, InputOf: agree.F32, Output: out, Of: agree.F32, Weight: values(w, n, k)}
	v, err := agree.Check(t.Context(), l, agree.Claim{Recipe: recipe}, agree.Options{})
	require.NoError(t, err)
	require.Equal(t, "undecided", v.Word())
	require.Contains(t, v.Why, "another candidate is far nearer")
	require.Contains(t, v.Causes()[0], "another candidate is far nearer: the input is not quantized")
}
