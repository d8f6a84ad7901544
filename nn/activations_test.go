package nn

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

// ragged has no extent that a block divides, and more than one block along both.
func ragged() Config {
	return Config{Vocab: 128, Dim: 24, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 141, Context: 19, Workers: 1}
}

// randomFP8 rounds every operand at random.
func randomFP8() FP8 {
	f := DefaultFP8()
	for _, o := range []*Operands{&f.Forward, &f.InputGradient, &f.WeightGradient} {
		o.A.Policy = fp8.Policy{Rounding: fp8.Stochastic, Seed: 3}
		o.B.Policy = o.A.Policy
	}
	return f
}

func kept(cfg Config, f ActivationFormat) Config {
	cfg.Activations = f
	return cfg
}

// twins are a model that keeps activations in FP32 and one that keeps them as f
// says, after the same Loss.
func twins(t *testing.T, cfg Config, f ActivationFormat, batch, seq int) (wide, narrow *Llama) {
	wide, narrow = livelyModel(t, cfg), livelyModel(t, kept(cfg, f))
	tokens := someTokens(1, batch*seq, cfg.Vocab)
	for _, m := range []*Llama{wide, narrow} {
		_, err := m.Loss(t.Context(), tokens, tokens, batch, seq)
		require.NoError(t, err)
	}
	return wide, narrow
}

// TestKeptInput: what a layer keeps is the transposed input, quantized under the
// recipe of the weight gradient's second operand.
func TestKeptInput(t *testing.T) {
	const batch, seq = 9, 19
	recipes := sixRecipes()
	recipes.WeightGradient.B = scaling.Recipe{Profile: scaling.TEBlock, Format: fp8.E5M2, Block: tensor.Block{Rows: 1, Cols: 54}}
	recipes.WeightGradient.A.Block = tensor.Block{Rows: 1, Cols: 27}
	wide, narrow := twins(t, withFP8(ragged(), recipes), ActivationsFP8, batch, seq)
	for i, b := range narrow.blocks {
		in := wide.blocks[i]
		a, m := b.Attention, b.MLP
		for _, test := range []struct {
			layers []*Linear
			x      []float32
		}{
			{[]*Linear{a.Query, a.Key, a.Value}, *in.attentionInput},
			{[]*Linear{a.Output}, *in.Attention.mixed},
			{[]*Linear{m.Gate, m.Up}, *in.mlpInput},
			{[]*Linear{m.Down}, *in.MLP.product},
		} {
			cols := len(test.x) / (batch * seq)
			want := tensor.Tensor{Shape: []int{cols, batch * seq}}
			require.NoError(t, scaling.Quantize(t.Context(), &want, flip(test.x, batch*seq), scaling.Quantizer{Recipe: recipes.WeightGradient.B}))
			for _, l := range test.layers {
				got := l.kept
				require.Nil(t, l.x, "%s: let go", l.Weight.Name)
				require.Same(t, test.layers[0].kept, got, "%s: one tensor for all who read it", l.Weight.Name)
				require.Equal(t, want.Shape, got.Shape, l.Weight.Name)
				require.Equal(t, want.Block, got.Block, l.Weight.Name)
				require.Equal(t, want.Format, got.Format, l.Weight.Name)
				require.Equal(t, want.Codes, got.Codes, l.Weight.Name)
				require.Equal(t, want.Scales, got.Scales, l.Weight.Name)
			}
		}
		require.NotSame(t, a.Query.kept, a.Output.kept)
		require.NotSame(t, narrow.blocks[0].MLP.Down.kept, narrow.blocks[1].MLP.Gate.kept)
	}
}

// TestCachedBranches compares the backward pass of an MLP with formulas in which u
// and g were rounded in blocks of 1x128: under scales of powers of two, or of amax/448
// where x, too, was rounded before it is quantized for the weight gradient.
func TestCachedBranches(t *testing.T) {
	for _, f := range []ActivationFormat{ActivationsFP8SwiGLU, ActivationsDeepSeekV3} {
		t.Run(f.String(), func(t *testing.T) { testCachedBranches(t, f) })
	}
}

func testCachedBranches(t *testing.T, f ActivationFormat) {
	const rows = 21
	cfg := kept(withFP8(ragged(), sixRecipes()), f)
	recipes, dim, hidden := *cfg.FP8, cfg.Dim, cfg.Hidden
	multiplier := powerOfTwoMultiplier
	if f == ActivationsDeepSeekV3 {
		multiplier = exactMultiplier
	}
	for _, smoothing := range []*swiglu.Smoothing{nil, {}, {Axis: swiglu.PerToken, Exact: true}} {
		cfg.Smoothing = smoothing
		m := livelyModel(t, cfg).blocks[0].MLP
		for i, l := range []*Linear{m.Gate, m.Up, m.Down} {
			copy(l.Weight.Value, randoms(uint64(i), len(l.Weight.Value)))
		}
		x, dy := randoms(5, rows*dim), randoms(6, rows*dim)
		require.NoError(t, m.Forward(t.Context(), make([]float32, len(x)), x, rows))
		clear(m.branches.u) // as the next layer may
		clear(m.branches.g)
		clear(*m.product)
		dx := make([]float32, len(x))
		require.NoError(t, m.Backward(t.Context(), dx, dy))

		exactG := quantizedProduct(t, recipes.Forward, x, m.Gate.Weight.Value, rows, hidden, dim)
		exactU := quantizedProduct(t, recipes.Forward, x, m.Up.Weight.Value, rows, hidden, dim)
		g, u := roundedTo(fp8E4M3, 128, multiplier, exactG, hidden), roundedTo(fp8E4M3, 128, multiplier, exactU, hidden)
		scale := func(token, channel int) float64 { // of what was not rounded
			switch {
			case smoothing == nil:
				return 1
			case smoothing.Axis == swiglu.PerToken:
				return 1 / largestOf(exactU[token*hidden:(token+1)*hidden])
			}
			return math.Exp2(-math.Floor(math.Log2(largestOf(flip(exactU, rows)[channel*rows : (channel+1)*rows]))))
		}

		down, dScaled := append([]float32{}, m.Down.Weight.Value...), append([]float32{}, dy...)
		for i := range dScaled {
			if smoothing != nil && smoothing.Axis == swiglu.PerToken {
				dScaled[i] = float32(float64(dy[i]) / float64(float32(scale(i/dim, 0))))
			}
		}
		for i := range down {
			if smoothing != nil && smoothing.Axis == swiglu.PerChannel {
				down[i] /= float32(scale(0, i%hidden))
			}
		}
		dz := quantizedProduct(t, recipes.InputGradient, dScaled, flip(down, dim), rows, hidden, dim)
		require.Equal(t, dz, m.scratch.dz)
		for i := range u {
			v, s := float64(g[i]), scale(i/hidden, i%hidden)
			sigmoid := 1 / (1 + math.Exp(-v))
			requireNear(t, s*float64(u[i])*v*sigmoid, (*m.product)[i])
			requireNear(t, s*float64(dz[i])*v*sigmoid, m.scratch.du[i])
			requireNear(t, s*float64(u[i])*float64(dz[i])*sigmoid*(1+v*(1-sigmoid)), m.scratch.dg[i])
		}

		dg, du := m.scratch.dg, m.scratch.du
		if f == ActivationsDeepSeekV3 {
			x = roundedTo(fp8E4M3, 4, exactMultiplier, x, dim) // as recipes.Forward.A
		}
		require.Equal(t, quantizedProduct(t, recipes.WeightGradient, flip(dg, rows), flip(x, rows), hidden, dim, rows), m.Gate.Weight.Grad)
		require.Equal(t, quantizedProduct(t, recipes.WeightGradient, flip(du, rows), flip(x, rows), hidden, dim, rows), m.Up.Weight.Grad)
		want := quantizedProduct(t, recipes.WeightGradient, flip(dScaled, rows), flip(*m.product, rows), dim, hidden, rows)
		for i := range want {
			if smoothing != nil && smoothing.Axis == swiglu.PerChannel {
				want[i] /= float32(scale(0, i%hidden))
			}
		}
		require.Equal(t, want, m.Down.Weight.Grad)
		want = quantizedProduct(t, recipes.InputGradient, dg, flip(m.Gate.Weight.Value, hidden), rows, dim, hidden)
		for i, v := range quantizedProduct(t, recipes.InputGradient, du, flip(m.Up.Weight.Value, hidden), rows, dim, hidden) {
			want[i] += v
		}
		require.Equal(t, want, dx)
	}
}

func requireNear(t *testing.T, want float64, got float32) {
	t.Helper()
	require.InDelta(t, want, got, 2e-6*math.Abs(want)+1e-30)
}

func largestOf(x []float32) (amax float64) {
	for _, v := range x {
		amax = max(amax, math.Abs(float64(v)))
	}
	return amax
}

// format is a format by its definition: its numbers have so many bits of mantissa, no
// exponent below the smallest normal one's, and no larger magnitude.
type format struct {
	mantissa, least int
	largest         float64
}

var (
	fp8E4M3 = format{3, -6, 448}
	e5m6    = format{6, -14, 65024}
)

// nearest returns the number of the format that is nearest to x, ties to even.
func (f format) nearest(x float64) float64 {
	if x == 0 {
		return x
	}
	step := math.Ldexp(1, max(math.Ilogb(x), f.least)-f.mantissa)
	return math.Copysign(min(math.RoundToEven(math.Abs(x)/step)*step, f.largest), x)
}

// powerOfTwoMultiplier is the largest that carries none past the largest number.
func powerOfTwoMultiplier(f format, amax float64) float32 {
	return float32(math.Exp2(math.Floor(math.Log2(f.largest / amax))))
}

func exactMultiplier(f format, amax float64) float32 { return float32(f.largest / amax) }

// roundedTo rounds blocks of each row to a format, in FP32: multiplied, rounded, and divided
// by what they were multiplied by, as a product with its reciprocal.
func roundedTo(f format, block int, multiplier func(format, float64) float32, x []float32, cols int) []float32 {
	rounded := make([]float32, len(x))
	for row := 0; row < len(x); row += cols {
		for lo := row; lo < row+cols; lo += block {
			hi := min(lo+block, row+cols)
			if largestOf(x[lo:hi]) == 0 {
				continue
			}
			up := multiplier(f, largestOf(x[lo:hi]))
			for i := lo; i < hi; i++ {
				rounded[i] = float32(f.nearest(float64(float32(x[i]*up)))) * float32(1/up)
			}
		}
	}
	return rounded
}

// delayedRagged has a history for every operand.
func delayedRagged() Config {
	cfg := withFP8(ragged(), ProfileFP8(scaling.TEDelayed, fp8.E5M2))
	cfg.Smoothing = &swiglu.Smoothing{Delay: 2}
	return cfg
}

// TestKeptAmax: quantized early, an input is still seen once a step, and only where
// a backward pass is to follow.
func TestKeptAmax(t *testing.T) {
	const batch, seq = 3, 7
	wide, narrow := twins(t, delayedRagged(), ActivationsFP8, batch, seq)
	current := func(m *Llama) map[string]scaling.Float {
		seen := map[string]scaling.Float{}
		for name, h := range m.Shared().Scaling().State().Histories.Histories {
			if strings.HasSuffix(name, ".input weight-gradient") {
				seen[name] = h.Blocks[0].Current
			}
		}
		return seen
	}
	of := map[string]float64{}
	for i, b := range wide.blocks {
		for _, l := range b.linears() {
			name := strings.TrimSuffix(l.Weight.Name, "weight") + "input weight-gradient"
			of[name] = largestOf(l.x)
			require.Zero(t, current(wide)[name], "in FP32 the backward pass sees it")
		}
		require.NotSame(t, narrow.blocks[i].Attention.Query.kept, narrow.blocks[i].Attention.Key.kept, "each has a history")
	}
	require.Len(t, of, 14)
	for name, amax := range of {
		require.EqualValues(t, amax, current(narrow)[name], "%s: seen by Loss", name)
	}
	for _, m := range []*Llama{wide, narrow} {
		require.NoError(t, m.Backward(t.Context()))
	}
	require.Equal(t, wide.Shared().Scaling().State(), narrow.Shared().Scaling().State(), "and the same once it is over")
	wide.EndStep()
	narrow.EndStep()

	// What is only looked at leaves the histories of the weight gradients alone.
	before := narrow.Shared().Scaling().State()
	tokens := someTokens(2, batch*seq, wide.cfg.Vocab)
	_, err := narrow.Evaluate(t.Context(), tokens, tokens, batch, seq)
	require.NoError(t, err)
	require.Equal(t, before, narrow.Shared().Scaling().State())
	for _, m := range []*Llama{wide, narrow} {
		_, err = m.Logits(t.Context(), tokens, batch, seq)
		require.NoError(t, err)
	}
	require.Equal(t, wide.Shared().Scaling().State(), narrow.Shared().Scaling().State())
	for name, amax := range current(narrow) {
		require.Zero(t, amax, name)
	}
}

// TestBackwardNeedsItsOwnLoss: what was kept for one pass does not serve another.
func TestBackwardNeedsItsOwnLoss(t *testing.T) {
	_, m := twins(t, withFP8(ragged(), DefaultFP8()), ActivationsFP8, 1, 3)
	tokens := []int32{1, 2, 3}
	_, err := m.Logits(t.Context(), tokens, 1, 3)
	require.NoError(t, err)
	require.ErrorContains(t, m.Backward(t.Context()), "without Loss")
	require.Nil(t, m.blocks[0].MLP.Up.kept)
	_, err = m.Loss(t.Context(), tokens, tokens, 1, 3)
	require.NoError(t, err)
	require.NotNil(t, m.blocks[0].MLP.Up.kept)
	_, err = m.Evaluate(t.Context(), tokens, tokens, 1, 3)
	require.NoError(t, err)
	require.ErrorContains(t, m.Backward(t.Context()), "without Loss")
	require.Nil(t, m.blocks[0].MLP.Up.kept)
}

func TestActivationFormats(t *testing.T) {
	require.Zero(t, ActivationsFP32)
	for _, f := range ActivationFormats() {
		var parsed ActivationFormat
		require.NoError(t, parsed.UnmarshalText([]byte(f.String())))
		require.Equal(t, f, parsed)
		text, err := json.Marshal(f)
		require.NoError(t, err)
		var back ActivationFormat
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, f, back)
	}
	require.ErrorContains(t, new(ActivationFormat).UnmarshalText([]byte("fp4")), `unknown activation format "fp4": want one of fp32, fp8, fp8-swiglu, deepseek-v3`)
	require.Error(t, json.Unmarshal([]byte(`"fp4"`), new(ActivationFormat)))
}

func TestConfigRefusesActivations(t *testing.T) {
	for _, f := range []ActivationFormat{ActivationsFP8, ActivationsFP8SwiGLU} {
		_, err := NewLlama(kept(small(), f), 1)
		require.ErrorContains(t, err, "Config.Activations is "+f.String()+" and Config.FP8 is nil")
	}
	_, err := NewLlama(kept(withFP8(small(), DefaultFP8()), 4), 1)
	require.ErrorContains(t, err, "Config.Activations is ActivationFormat(4): want one of")
}
