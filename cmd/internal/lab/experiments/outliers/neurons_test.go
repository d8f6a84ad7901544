package outliers

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/telemetry"
)

// tinyLlama returns a model of two layers with larger weights than those of a first
// step, and a batch for it.
func tinyLlama(t *testing.T) (m *nn.Llama, tokens []int32, batch, seq int) {
	m, err := nn.NewLlama(nn.Config{Vocab: 16, Dim: 8, Layers: 2, Heads: 2, Hidden: 24, Context: 6}, 1)
	require.NoError(t, err)
	for n, p := range m.Params() {
		for i := range p.Value {
			if p.Rows > 1 {
				p.Value[i] *= 15
			} else {
				p.Value[i] = 1 + float32(i*n%7)/8 // gains that tell norms apart
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2 * 6 {
		tokens = append(tokens, random.Int32N(16))
	}
	return m, tokens, 2, 6
}

// layerByHand is a layer whose attention adds nothing, in float64: it returns gate and
// up, and what it makes of the residual stream x.
func layerByHand(m *nn.Llama, layer int, x []float64) (gate, up, out []float64) {
	norm := m.Param([]string{"model.layers.0", "model.layers.1"}[layer] + ".post_attention_layernorm.weight").Value
	var squares float64
	for _, v := range x {
		squares += v * v
	}
	r := math.Sqrt(squares/float64(len(x)) + 1e-5)
	w := mlpOf(m, layer)
	out = append(out, x...)
	for n := range w.up.Rows {
		var g, u float64
		for i, v := range x {
			g += v / r * float64(norm[i]) * float64(w.gate.Value[n*len(x)+i])
			u += v / r * float64(norm[i]) * float64(w.up.Value[n*len(x)+i])
		}
		gate, up = append(gate, g), append(up, u)
		for i := range out {
			out[i] += u * g / (1 + math.Exp(-g)) * float64(w.down.Value[i*w.up.Rows+n])
		}
	}
	return gate, up, out
}

func TestBranchesByHand(t *testing.T) {
	m, tokens, batch, seq := tinyLlama(t)
	for _, name := range []string{"model.layers.0.self_attn.o_proj.weight", "model.layers.1.self_attn.o_proj.weight"} {
		clear(m.Param(name).Value)
	}
	layers, err := branchesOf(t.Context(), m, tokens, batch, seq)
	require.NoError(t, err)
	require.Len(t, layers, 2)
	for i, token := range tokens {
		var x []float64
		for _, v := range rowOf(m.Param("model.embed_tokens.weight"), int(token)) {
			x = append(x, float64(v))
		}
		for layer, b := range layers {
			gate, up, out := layerByHand(m, layer, x)
			row := b.rows(i, i+1)
			require.InDeltaSlice(t, gate, row.gate, 1e-4)
			require.InDeltaSlice(t, up, row.up, 1e-4)
			x = out
		}
	}
}

// TestBranchesAreTheModels: attention included, the largest z is the one of which the model
// itself tells, but for the rounding of its products' operands.
func TestBranchesAreTheModels(t *testing.T) {
	m, tokens, batch, seq := tinyLlama(t)
	layers, err := branchesOf(t.Context(), m, tokens, batch, seq)
	require.NoError(t, err)
	cfg := m.Config()
	cfg.FP8 = blockRecipes()
	quantized, err := nn.NewLlama(cfg, 0)
	require.NoError(t, err)
	copyParams(quantized, m)
	var recorder telemetry.Recorder
	quantized.Listen(&recorder)
	_, err = quantized.Forward(t.Context(), tokens, batch, seq)
	require.NoError(t, err)
	found := 0
	for _, total := range recorder.Totals() {
		for layer, name := range []string{"model.layers.0.mlp.down_proj.input", "model.layers.1.mlp.down_proj.input"} {
			if total.Tensor == name && total.Op == "forward" {
				require.InEpsilon(t, total.Stats.Amax, largestMagnitude(layers[layer].plain()), 0.15)
				found++
			}
		}
	}
	require.Equal(t, 2, found)
}

func TestAlign(t *testing.T) {
	m, _, _, _ := tinyLlama(t)
	w := mlpOf(m, 1)
	signs := map[bool]int{}
	for neuron := range w.up.Rows {
		before := w.cosine(neuron)
		gain, weight := w.gain(neuron), w.weight(neuron)
		gate := append([]float32(nil), rowOf(w.gate, neuron)...)
		w.align(neuron)
		require.InDelta(t, math.Copysign(1, before), w.cosine(neuron), 1e-6)
		require.InEpsilon(t, gain, w.gain(neuron), 1e-6)
		require.Equal(t, weight, w.weight(neuron))
		require.Equal(t, gate, rowOf(w.gate, neuron))
		signs[before > 0]++
	}
	require.Len(t, signs, 2, "both")
}

func TestCosineAndGainByHand(t *testing.T) {
	w := mlpWeights{
		up:   &nn.Param{Rows: 2, Cols: 2, Value: []float32{3, 4, 0, 0}},
		gate: &nn.Param{Rows: 2, Cols: 2, Value: []float32{-2, 0, 1, 1}},
		down: &nn.Param{Rows: 2, Cols: 2, Value: []float32{1, 6, 2, 8}},
	}
	require.InDelta(t, -0.6, w.cosine(0), 1e-12)
	require.Zero(t, w.cosine(1))
	require.Equal(t, 10.0, w.gain(0))
	require.Equal(t, 10.0, w.weight(1))
	w.grow(0, 2)
	require.Equal(t, []float32{6, 8, 0, 0}, w.up.Value)
	require.Equal(t, []float32{-4, 0, 1, 1}, w.gate.Value)
	require.Equal(t, []float32{0.25, 6, 0.5, 8}, w.down.Value)
}

// TestGrowKeepsTheFunction where gates are far from 0, on either side.
func TestGrowKeepsTheFunction(t *testing.T) {
	for _, gate := range []float32{20, -20} {
		w := mlpWeights{
			up:   &nn.Param{Rows: 1, Cols: 1, Value: []float32{3}},
			gate: &nn.Param{Rows: 1, Cols: 1, Value: []float32{gate}},
			down: &nn.Param{Rows: 1, Cols: 1, Value: []float32{0.5}},
		}
		out := func() float64 {
			z := make([]float32, 1)
			swiglu.Forward(z, w.up.Value, w.gate.Value, swiglu.Scales{})
			return float64(z[0]) * float64(w.down.Value[0])
		}
		before := out()
		w.grow(0, 5)
		require.InDelta(t, before, out(), 1e-5)
	}
}

func TestMatteringByHand(t *testing.T) {
	m, tokens, batch, seq := tinyLlama(t)
	layers, err := branchesOf(t.Context(), m, tokens, batch, seq)
	require.NoError(t, err)
	for layer, some := range mattering(m, layers, 24) {
		require.Len(t, some, 24)
		down := m.Param([]string{"model.layers.0", "model.layers.1"}[layer] + ".mlp.down_proj.weight").Value
		last := math.Inf(1)
		seen := map[int]bool{}
		for _, neuron := range some {
			var z, column float64
			for token := range batch * seq {
				z += math.Pow(float64(layers[layer].plain()[token*24+neuron]), 2)
			}
			for i := range 8 {
				column += math.Pow(float64(down[i*24+neuron]), 2)
			}
			require.LessOrEqual(t, z*column, last*(1+1e-9))
			last = z * column
			seen[neuron] = true
		}
		require.Len(t, seen, 24)
	}
	require.Len(t, mattering(m, layers, 3)[1], 3)
}

// TestLevel: afterwards the neurons' largest |z| are about that of the layer; their
// gates are not all far from 0.
func TestLevel(t *testing.T) {
	m, tokens, batch, seq := tinyLlama(t)
	layers, err := branchesOf(t.Context(), m, tokens, batch, seq)
	require.NoError(t, err)
	some := neurons{{2, 5}, {7}}
	perChannel := some.largest(layers, smoothings[1].way)
	for layer, amax := range some.largest(layers, nil) {
		for i, neuron := range some[layer] {
			up := channelAmax(layers[layer].up, 24)[neuron]
			require.Equal(t, amax[i]/math.Exp2(math.Floor(math.Log2(up))), perChannel[layer][i])
			var want float64
			for token := range batch * seq {
				want = max(want, math.Abs(float64(layers[layer].plain()[token*24+neuron])))
			}
			require.Equal(t, want, amax[i])
		}
	}
	gain := mlpOf(m, 1).gain(7)
	ratio := largestMagnitude(layers[1].plain()) / some.largest(layers, nil)[1][0]
	some.level(m, layers)
	require.InEpsilon(t, gain*ratio, mlpOf(m, 1).gain(7), 1e-5, "the gain grows with |z|")
}

func TestNaturalFigures(t *testing.T) {
	m, tokens, batch, seq := tinyLlama(t)
	layers, err := branchesOf(t.Context(), m, tokens, batch, seq)
	require.NoError(t, err)
	// 24 neurons have 2 in a twentieth, rounded up.
	w := mlpOf(m, 1)
	for _, neuron := range []int{4, 9} {
		w.grow(neuron, 100)
	}
	w.align(4)
	figures := naturalOf(m, 30, layers)
	require.Len(t, figures, 2)
	f := figures[1]
	require.Equal(t, 30, f.step)
	require.Equal(t, 1, f.layer)
	require.InDelta(t, (1+math.Abs(w.cosine(9)))/2, f.cosineTop, 1e-6)
	below := 0
	for neuron := range 24 {
		if math.Abs(w.cosine(neuron)) < f.cosine {
			below++
		}
	}
	require.Equal(t, 12, below)
	require.Equal(t, largestMagnitude(layers[1].plain()), f.amax)
	require.Positive(t, f.median)
	require.Less(t, f.median, f.amax)
}

// TestCosineAtRandom: half of random directions are nearer.
func TestCosineAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const dim, tries = 64, 4000
	below := 0
	for range tries {
		a, b := make([]float32, dim), make([]float32, dim)
		for i := range dim {
			a[i], b[i] = float32(random.NormFloat64()), float32(random.NormFloat64())
		}
		if math.Abs(scalarProduct(a, b))/math.Sqrt(scalarProduct(a, a)*scalarProduct(b, b)) < cosineAtRandom(dim) {
			below++
		}
	}
	require.InDelta(t, 0.5, float64(below)/tries, 0.03)
}

func TestGrowthOfPlan(t *testing.T) {
	for _, o := range []lab.Options{{}, {Length: lab.Short}} {
		p := newPlan(o)
		steps, judgedLate := 0, 0
		for step := range p.steps() {
			if p.growing(step) {
				steps++
				require.True(t, p.late(step))
			}
			if p.judged(step) && p.late(step) {
				judgedLate++
			}
		}
		require.Equal(t, p.growth, steps)
		require.InEpsilon(t, 3e-3, p.schedule().At(p.base/10), 0.01)
		require.InEpsilon(t, 3e-5, p.schedule().At(p.base+p.heal), 1e-9)
		require.Less(t, p.growth, p.window, "the window outlasts the growth")
		require.GreaterOrEqual(t, judgedLate, 2)
	}
}
