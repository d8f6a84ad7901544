package nn

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
)

// plainMix is a step of SplitMix64: a counter, and its finalizer.
func plainMix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	x *= 0x94D049BB133111EB
	return x ^ x>>31
}

func TestPlainMix(t *testing.T) {
	require.EqualValues(t, uint64(6457827717110365317), plainMix(1234567), "the reference implementation's first output for this seed")
}

// plainSeed is the seed of one rounding of a gradient, whose name is hashed by FNV-1a.
func plainSeed(seed, pass uint64, name string) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range []byte(name) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return plainMix(plainMix(plainMix(seed)+pass) + h)
}

func stochasticFP8(f FP8, seed uint64) FP8 {
	f.Stochastic, f.Seed = true, seed
	return f
}

func atRandomUnder(r scaling.Recipe, seed uint64) scaling.Recipe {
	r.Policy.Rounding, r.Policy.Seed = fp8.Stochastic, seed
	return r
}

// TestStochasticFP8Products compares a layer's gradients in several passes with
// products of operands that the test rounds under seeds of its own.
func TestStochasticFP8Products(t *testing.T) {
	const rows, out, in, seed = 7, 6, 9, 42
	recipes := stochasticFP8(sixRecipes(), seed)
	recipes.InputGradient.A.Policy.Inf = fp8.InfPropagate
	var shared Shared
	l, err := NewLinear("layer.weight", out, in, Options{FP8: &recipes, Shared: &shared})
	require.NoError(t, err)
	copy(l.Weight.Value, randoms(1, out*in))
	x, dy := randoms(2, rows*in), randoms(3, rows*out)
	y, dx := make([]float32, rows*out), make([]float32, rows*in)
	requirePass := func(pass uint64) {
		clear(l.Weight.Grad)
		shared.Scaling().BeginBackward()
		require.NoError(t, l.Forward(t.Context(), y, x, rows))
		require.NoError(t, l.Forward(t.Context(), y, x, rows), "as often as one likes")
		require.NoError(t, l.Backward(t.Context(), dx, dy))
		forX, forW := recipes.InputGradient, recipes.WeightGradient
		forX.A = atRandomUnder(forX.A, plainSeed(seed, pass, "layer input-gradient"))
		forW.A = atRandomUnder(forW.A, plainSeed(seed, pass, "layer weight-gradient"))
		require.Equal(t, quantizedProduct(t, recipes.Forward, x, l.Weight.Value, rows, out, in), y)
		require.Equal(t, quantizedProduct(t, forX, dy, flip(l.Weight.Value, out), rows, in, out), dx)
		require.Equal(t, quantizedProduct(t, forW, flip(dy, rows), flip(x, rows), out, in, rows), l.Weight.Grad)
	}
	requirePass(0)
	requirePass(1)
	shared.Scaling().SetPass(1 << 40)
	requirePass(1 << 40)
	requirePass(1<<40 + 1)
	shared.Scaling().SetPass(1<<40 + 1) // as a model that was restored
	requirePass(1<<40 + 1)

	// A layer that is used twice in a pass has other random numbers the second time.
	again := make([]float32, len(dx))
	require.NoError(t, l.Forward(t.Context(), y, x, rows))
	require.NoError(t, l.Backward(t.Context(), again, dy))
	require.NotEqual(t, dx, again)
	require.Equal(t, sixRecipes().WeightGradient, recipes.WeightGradient, "the caller's recipes stay as they are")
}

// usedSeeds returns the seeds of a model's last backward pass, by name.
func usedSeeds(m *Llama) map[string]uint64 {
	used := map[string]uint64{}
	for _, b := range m.blocks {
		for _, l := range b.linears() {
			p := l.products.(*fp8Products)
			used[p.layer+" input-gradient"] = p.inputGradientA.quantizer.Recipe.Policy.Seed
			used[p.layer+" weight-gradient"] = p.weightGradientA.quantizer.Recipe.Policy.Seed
		}
	}
	return used
}

// TestNoSeedTwice: every rounding of every pass, micro-batches included, has its own
// seed, that of the definition.
func TestNoSeedTwice(t *testing.T) {
	const seed, passes = 3, 20
	m, err := NewLlama(withFP8(small(), stochasticFP8(DefaultFP8(), seed)), 1)
	require.NoError(t, err)
	seen := map[uint64]bool{}
	for pass := range uint64(passes) {
		accumulate(t, m, 0.5)
		if pass%4 == 3 {
			m.EndStep()
		}
		used := usedSeeds(m)
		require.Len(t, used, 2*7*m.cfg.Layers)
		for name, got := range used {
			require.Equal(t, plainSeed(seed, pass, name), got, "pass %d: %s", pass, name)
			seen[got] = true
		}
	}
	require.Len(t, seen, 2*7*m.cfg.Layers*passes)
	require.EqualValues(t, passes, m.Shared().Scaling().State().Backwards)
}

// TestWhatIsNoPass: what leaves the number of the pass as it is, and what does not.
func TestWhatIsNoPass(t *testing.T) {
	m, err := NewLlama(withFP8(small(), stochasticFP8(DefaultFP8(), 3)), 1)
	require.NoError(t, err)
	accumulate(t, m, 1)
	accumulate(t, m, 1)
	tokens := someTokens(1, 16, m.cfg.Vocab)
	_, err = m.Loss(t.Context(), tokens, tokens, 1, 16)
	require.NoError(t, err)
	_, err = m.Evaluate(t.Context(), tokens, tokens, 1, 16)
	require.NoError(t, err)
	require.ErrorContains(t, m.Backward(t.Context()), "without Loss")
	require.EqualValues(t, 2, m.Shared().Scaling().State().Backwards)
	m.DropStep()
	require.EqualValues(t, 2, m.Shared().Scaling().State().Backwards, "numbers are not used again")

	plain := livelyModel(t, withFP8(small(), DefaultFP8()))
	accumulate(t, plain, 1)
	require.Zero(t, plain.Shared().Scaling().State().Backwards, "nothing depends on it")
}

func TestBackwardsAreMerged(t *testing.T) {
	m, err := NewLlama(withFP8(small(), stochasticFP8(DefaultFP8(), 3)), 1)
	require.NoError(t, err)
	state := m.Shared().Scaling().State()
	var states []ScalingState
	for _, n := range []uint64{3, 8, 5} {
		state.Backwards = n
		states = append(states, state)
	}
	merged, err := MergeScaling(states...)
	require.NoError(t, err)
	require.EqualValues(t, 8, merged.Backwards)
	require.NoError(t, m.Shared().Scaling().Restore(merged))
	accumulate(t, m, 1)
	for name, got := range usedSeeds(m) {
		require.Equal(t, plainSeed(3, 8, name), got, name)
	}
	require.EqualValues(t, 9, m.Shared().Scaling().State().Backwards)
}

// TestStochasticGradientsAreUnbiased: products with the identity show the rounded
// gradients. Their mean over many passes is the gradient, to within what chance
// allows, where rounding to nearest is off.
func TestStochasticGradientsAreUnbiased(t *testing.T) {
	const n, passes, sigmas = 16, 600, 5
	hybrid, e4m3 := ProfileFP8(scaling.TECurrent, fp8.E5M2), DefaultFP8()
	e2m1, bf16 := DefaultRounding(NarrowE2M1), DefaultRounding(NarrowBF16)
	bf16.BF16Results = false // of dW, which is a sum here
	dy := randoms(3, n*n)
	amax, _ := fp8.Amax(dy)
	for name, c := range map[string]struct {
		Options
		step float64 // from 1 to the next number; twice as much under an exact scale
		zero float64 // from 0 to the next number, under a scale for amax 1, at most
	}{
		"E5M2": {Options{FP8: &hybrid}, 1.0 / 4, 0x1p-16 / 57344},
		"E4M3": {Options{FP8: &e4m3}, 1.0 / 8, 0x1p-9 / 224},
		"E2M1": {Options{Rounding: &e2m1}, 1.0 / 2, 0.5 / 3},
		"BF16": {Options{Rounding: &bf16}, 1.0 / 128, 0},
	} {
		nearest := meanGradients(t, c.Options, dy, n, 1)
		if c.FP8 != nil {
			f := stochasticFP8(*c.FP8, 5)
			c.FP8 = &f
		} else {
			r := *c.Rounding
			r.Stochastic, r.Seed = true, 5
			c.Rounding = &r
		}
		random := meanGradients(t, c.Options, dy, n, passes)
		for which := range random {
			off := 0
			for i, g := range dy {
				_, exponent := math.Frexp(float64(g)) // one more than in [1, 2)
				width := max(math.Ldexp(c.step, exponent), c.zero*float64(amax))
				allowed := sigmas * width / 2 / math.Sqrt(passes)
				require.InDelta(t, g, random[which][i], allowed, "%s: element %d of gradient %d", name, i, which)
				if math.Abs(nearest[which][i]-float64(g)) > allowed {
					off++
				}
			}
			require.Greater(t, off, n*n/4, "%s: nearest must fail where random rounding does not", name)
		}
	}
}

// meanGradients returns the mean of dx and of dW over passes of a layer whose weight
// and input are the identity.
func meanGradients(t *testing.T, o Options, dy []float32, n, passes int) (mean [2][]float64) {
	l, err := NewLinear("layer.weight", n, n, o)
	require.NoError(t, err)
	identity := make([]float32, n*n)
	for i := range n {
		identity[i*n+i] = 1
	}
	copy(l.Weight.Value, identity)
	y, dx := make([]float32, n*n), make([]float32, n*n)
	mean = [2][]float64{make([]float64, n*n), make([]float64, n*n)}
	for range passes {
		clear(l.Weight.Grad)
		require.NoError(t, l.Forward(t.Context(), y, identity, n))
		require.NoError(t, l.Backward(t.Context(), dx, dy))
		dw := flip(l.Weight.Grad, n) // dyᵀ, flipped back
		for i := range dx {
			mean[0][i] += float64(dx[i]) / float64(passes)
			mean[1][i] += float64(dw[i]) / float64(passes)
		}
	}
	return mean
}

// accumulate does a forward and a backward pass of scale times the loss.
func accumulate(t *testing.T, m *Llama, scale float32) {
	tokens := someTokens(1, 16, m.cfg.Vocab)
	_, err := m.Loss(t.Context(), tokens, tokens, 1, 16)
	require.NoError(t, err)
	require.NoError(t, m.BackwardScaled(t.Context(), scale))
}
