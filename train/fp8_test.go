package train

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/tensor"
)

// sixRecipes differ in every operand, so that a recipe used in the wrong place
// shows.
func sixRecipes() FP8 {
	recipe := func(p scaling.Profile, f fp8.Format, rows, cols int) scaling.Recipe {
		return scaling.Recipe{Profile: p, Format: f, Block: tensor.Block{Rows: rows, Cols: cols}}
	}
	return FP8{
		Forward:        Operands{recipe(scaling.TEBlock, fp8.E4M3, 1, 4), recipe(scaling.DeepGEMM, fp8.E4M3, 2, 4)},
		InputGradient:  Operands{recipe(scaling.TEBlock, fp8.E5M2, 1, 2), recipe(scaling.DeepSeek, fp8.E4M3, 4, 2)},
		WeightGradient: Operands{recipe(scaling.MTFP8, fp8.E5M2, 1, 3), recipe(scaling.TECurrentPow2, fp8.E4M3, 1, 0)},
	}
}

// TestFP8Products compares the three products of a layer with products of
// operands that the test quantizes itself.
func TestFP8Products(t *testing.T) {
	const rows, out, in = 7, 6, 9
	recipes := sixRecipes()
	l, err := NewLinear("layer.weight", out, in, LinearOptions{FP8: &recipes})
	require.NoError(t, err)
	copy(l.Weight.Value, randoms(1, out*in))
	x, dy := randoms(2, rows*in), randoms(3, rows*out)

	y, dx := make([]float32, rows*out), make([]float32, rows*in)
	require.NoError(t, l.Forward(y, x, rows))
	require.NoError(t, l.Backward(dx, dy))

	require.Equal(t, product(t, recipes.Forward, x, l.Weight.Value, rows, out, in), y)
	require.Equal(t, product(t, recipes.InputGradient, dy, flip(l.Weight.Value, out), rows, in, out), dx)
	require.Equal(t, product(t, recipes.WeightGradient, flip(dy, rows), flip(x, rows), out, in, rows), l.Weight.Grad)
}

func product(t *testing.T, o Operands, a, b []float32, m, n, k int) []float32 {
	x := &tensor.Tensor{Name: "a", Shape: []int{m, k}}
	w := &tensor.Tensor{Name: "b", Shape: []int{n, k}}
	require.NoError(t, scaling.Quantize(x, a, &scaling.Quantizer{Recipe: o.A}))
	require.NoError(t, scaling.Quantize(w, b, &scaling.Quantizer{Recipe: o.B}))
	c := make([]float32, m*n)
	require.NoError(t, gemm.Multiply(c, x, w, gemm.Options{}))
	return c
}

func flip(m []float32, rows int) []float32 {
	cols := len(m) / rows
	v := make([]float32, len(m))
	for i := range rows {
		for j := range cols {
			v[j*rows+i] = m[i*cols+j]
		}
	}
	return v
}

// steps trains a small model on a repeated text and returns the losses.
func steps(t *testing.T, cfg Config, n int, listener tensor.Reporter) (*Llama, []float32) {
	m, err := NewLlama(cfg, 5)
	require.NoError(t, err)
	m.Listen(listener)
	o := AdamW{Clip: 1}
	return m, resume(t, m, &o, 0, n)
}

func resume(t *testing.T, m *Llama, o *AdamW, from, n int) (losses []float32) {
	corpus, err := NewCorpus([]byte("the quick brown fox jumps over the lazy dog; the dog sleeps on. "), 0, 3)
	require.NoError(t, err)
	for step := from; step < from+n; step++ {
		tokens, targets, err := corpus.Batch(step, 4, 16)
		require.NoError(t, err)
		m.ZeroGrad()
		loss, err := m.Loss(tokens, targets, 4, 16)
		require.NoError(t, err)
		require.NoError(t, m.Backward())
		_, err = o.Step(m.Params(), 3e-3)
		require.NoError(t, err)
		m.EndStep()
		losses = append(losses, loss)
	}
	return losses
}

func small() Config {
	return Config{Vocab: 128, Dim: 32, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 48, Context: 16}
}

func withFP8(cfg Config, f FP8) Config {
	cfg.FP8 = &f
	return cfg
}

func TestFP8Training(t *testing.T) {
	n := 60
	if testing.Short() {
		n = 20
	}
	_, plain := steps(t, small(), n, nil)
	for name, f := range map[string]FP8{
		"default":    DefaultFP8(),
		"hybrid":     ProfileFP8(scaling.TEBlock, fp8.E5M2),
		"per tensor": ProfileFP8(scaling.TECurrent, fp8.E5M2),
		"delayed":    ProfileFP8(scaling.TEDelayed, fp8.E5M2),
		"row":        ProfileFP8(scaling.TorchAORowwisePow2, fp8.E4M3),
		"mx":         ProfileFP8(scaling.MXRCeil, fp8.E4M3),
	} {
		_, losses := steps(t, withFP8(small(), f), n, nil)
		require.NotEqual(t, plain, losses, "%s: FP8 must show", name)
		require.InEpsilon(t, plain[n-1], losses[n-1], 0.05, name)
		require.Less(t, losses[n-1], losses[0]*0.8, "%s: must learn", name)
	}
}

// TestFP8SameBitsEverywhere compares with losses that were computed once, on
// amd64.
func TestFP8SameBitsEverywhere(t *testing.T) {
	cfg := withFP8(small(), ProfileFP8(scaling.TEBlock, fp8.E5M2))
	cfg.Smoothing = &swiglu.Smoothing{Exact: true}
	_, losses := steps(t, cfg, 4, nil)
	var bits []uint32
	for _, l := range losses {
		bits = append(bits, math.Float32bits(l))
	}
	require.Equal(t, []uint32{0x409bb99c, 0x40979d8e, 0x40921745, 0x408d68ec}, bits)
}

func TestFP8WorkersAndListeners(t *testing.T) {
	cfg := withFP8(small(), DefaultFP8())
	cfg.Smoothing = &swiglu.Smoothing{}
	cfg.Workers = 1
	_, want := steps(t, cfg, 4, nil)
	for _, workers := range []int{2, 3, 7} {
		cfg.Workers = workers
		_, got := steps(t, cfg, 4, nil)
		require.Equal(t, want, got, "%d workers", workers)
	}
	_, got := steps(t, cfg, 4, telemetry.New())
	require.Equal(t, want, got, "listening")
}

func TestListen(t *testing.T) {
	recorder := telemetry.New()
	m, _ := steps(t, withFP8(small(), DefaultFP8()), 1, recorder)
	require.NoError(t, recorder.Flush())
	totals := recorder.Totals()
	require.Len(t, totals, 7*6*m.Config().Layers, "seven layers of six operands in each block")
	for _, total := range totals {
		require.Positive(t, total.Stats.Amax, "%s %s", total.Tensor, total.Op)
	}
	_, bad := recorder.FirstNonFinite()
	require.False(t, bad)

	up := m.Param("model.layers.1.mlp.up_proj.weight")
	up.Value[3*up.Cols+2] = float32(math.Inf(1))
	tokens := []int32{1, 2, 3, 4}
	_, err := m.Loss(tokens, tokens, 1, 4)
	require.NoError(t, err)
	first, bad := recorder.FirstNonFinite()
	require.True(t, bad)
	require.Equal(t, "model.layers.1.mlp.up_proj.weight", first.Tensor)
	require.Equal(t, "forward", first.Op)
	require.Equal(t, 3*up.Cols+2, first.Index)
}

// TestSmoothingKeepsBits: with scales of powers of two and FP32 products, a
// smoothed model is the plain one, in its losses and in what it learns.
func TestSmoothingKeepsBits(t *testing.T) {
	plain, want := steps(t, small(), 5, nil)
	for _, s := range []swiglu.Smoothing{{}, {Axis: swiglu.PerToken}, {Delay: 3}, {Axis: swiglu.PerToken, Delay: 1}} {
		cfg := small()
		cfg.Smoothing = &s
		m, got := steps(t, cfg, 5, nil)
		require.Equal(t, want, got, "%+v", s)
		for i, p := range plain.Params() {
			require.Equal(t, p.Value, m.Params()[i].Value, "%+v: %s", s, p.Name)
		}
	}
}

// TestSmoothingGradient: scales that are not powers of two change roundings
// only.
func TestSmoothingGradient(t *testing.T) {
	plain, _ := steps(t, small(), 1, nil)
	for _, axis := range []swiglu.Axis{swiglu.PerChannel, swiglu.PerToken} {
		cfg := small()
		cfg.Smoothing = &swiglu.Smoothing{Axis: axis, Exact: true}
		m, _ := steps(t, cfg, 1, nil)
		for i, p := range plain.Params() {
			requireClose(t, p.Name, p.Grad, m.Params()[i].Grad)
		}
	}
}

func requireClose(t *testing.T, name string, want, got []float32) {
	var diff, sum float64
	for i := range want {
		d := float64(want[i]) - float64(got[i])
		diff += d * d
		sum += float64(want[i]) * float64(want[i])
	}
	require.Less(t, math.Sqrt(diff), 1e-5*math.Sqrt(sum), name)
}

// TestDelayedStateResumes: a model with the saved weights and scaling state goes
// on as the one that was saved.
func TestDelayedStateResumes(t *testing.T) {
	cfg := withFP8(small(), ProfileFP8(scaling.TEDelayed, fp8.E5M2))
	cfg.Smoothing = &swiglu.Smoothing{Delay: 2}
	saved, _ := steps(t, cfg, 3, nil)
	text, err := json.Marshal(saved.ScalingState())
	require.NoError(t, err)

	restored, err := NewLlama(cfg, 99)
	require.NoError(t, err)
	for i, p := range saved.Params() {
		copy(restored.Params()[i].Value, p.Value)
	}
	var state ScalingState
	require.NoError(t, json.Unmarshal(text, &state))
	require.NoError(t, restored.RestoreScaling(state))
	require.Equal(t, resume(t, saved, &AdamW{}, 3, 3), resume(t, restored, &AdamW{}, 3, 3))
}

func TestNewLinearRefuses(t *testing.T) {
	_, err := NewLinear("w", 0, 2, LinearOptions{})
	require.ErrorContains(t, err, "w, [0, 2]")
	bad := DefaultFP8()
	bad.Forward.A.Epsilon = -1
	_, err = NewLinear("w", 2, 2, LinearOptions{FP8: &bad})
	require.ErrorContains(t, err, "FP8.Forward.A")
}

func TestDelayedLinear(t *testing.T) {
	recipes := ProfileFP8(scaling.TEDelayed, fp8.E5M2)
	_, err := NewLinear("w", 1, 1, LinearOptions{FP8: &recipes})
	require.ErrorContains(t, err, "w: a delayed recipe needs LinearOptions.Histories")

	var histories scaling.Histories
	l, err := NewLinear("w", 1, 1, LinearOptions{FP8: &recipes, Histories: &histories})
	require.NoError(t, err)
	l.Weight.Value[0] = 1
	y := make([]float32, 1)
	require.NoError(t, l.Forward(y, []float32{1e-4}, 1))
	require.Zero(t, y[0], "the first step has scale 1, under which 1e-4 is lost")
	histories.Update()
	require.NoError(t, l.Forward(y, []float32{1e-4}, 1))
	require.InEpsilon(t, 1e-4, y[0], 1.0/16)
}

func TestScalingStates(t *testing.T) {
	cfg := withFP8(small(), ProfileFP8(scaling.TEDelayed, fp8.E5M2))
	cfg.Smoothing = &swiglu.Smoothing{Delay: 2}
	a, _ := steps(t, cfg, 2, nil)
	b, _ := steps(t, cfg, 3, nil)
	both, err := MergeScaling(a.ScalingState(), b.ScalingState())
	require.NoError(t, err)
	swapped, err := MergeScaling(b.ScalingState(), a.ScalingState())
	require.NoError(t, err)
	require.Equal(t, both, swapped)
	require.NoError(t, a.RestoreScaling(both))
	require.Equal(t, both, a.ScalingState())

	_, err = MergeScaling()
	require.ErrorContains(t, err, "no scaling state")
	before := a.ScalingState()
	bad := b.ScalingState()
	bad.Smoothers = bad.Smoothers[:1]
	require.ErrorContains(t, a.RestoreScaling(bad), "of 1 layers: the model has 2")
	_, err = MergeScaling(before, bad)
	require.ErrorContains(t, err, "worker 1")
	bad = b.ScalingState()
	bad.Smoothers[1].Version = 9
	require.ErrorContains(t, a.RestoreScaling(bad), "layer 1: swiglu: state of version 9")
	bad = b.ScalingState()
	bad.Histories.Version = 9
	require.ErrorContains(t, a.RestoreScaling(bad), "scaling: state of version 9")
	require.Equal(t, before, a.ScalingState())
}

func TestConfigRefusesWhatCannotGoTogether(t *testing.T) {
	f := DefaultFP8()
	f.Forward.B.Block = tensor.Block{Rows: 1, Cols: 96}
	_, err := NewLlama(withFP8(small(), f), 1)
	require.ErrorContains(t, err, "FP8.Forward: gemm: tensor \"a\" in blocks of 1x128 and tensor \"b\" in blocks of 1x96")
	cfg := small()
	cfg.Smoothing = &swiglu.Smoothing{Axis: 9}
	_, err = NewLlama(cfg, 1)
	require.ErrorContains(t, err, "Config.Smoothing: swiglu: unknown axis 9")
	cfg.Smoothing = &swiglu.Smoothing{Delay: -1}
	_, err = NewLlama(cfg, 1)
	require.ErrorContains(t, err, "delay of -1 steps")
}

func TestConfigNamesTheBadRecipe(t *testing.T) {
	f := DefaultFP8()
	f.WeightGradient.B.Profile = "no-such"
	_, err := NewLlama(withFP8(small(), f), 1)
	require.ErrorContains(t, err, `FP8.WeightGradient.B: scaling: unknown profile "no-such"`)
}

// TestEvaluateLeavesNoTrace: losses and delayed scales go on as if nothing had
// been evaluated.
func TestEvaluateLeavesNoTrace(t *testing.T) {
	cfg := withFP8(small(), ProfileFP8(scaling.TEDelayed, fp8.E5M2))
	cfg.Smoothing = &swiglu.Smoothing{Delay: 2}
	_, want := steps(t, cfg, 6, nil)

	recorder := telemetry.New()
	m, got := steps(t, cfg, 3, recorder)
	require.NoError(t, recorder.Flush())
	before := recorder.Totals()
	tokens := []int32{100, 3, 5, 127}
	_, err := m.Evaluate(tokens, tokens, 1, 4)
	require.NoError(t, err)
	require.Equal(t, before, recorder.Totals())
	require.ErrorContains(t, m.Backward(), "without Loss")

	fresh, err := NewLlama(cfg, 5)
	require.NoError(t, err)
	o := AdamW{Clip: 1}
	require.Equal(t, got, resume(t, fresh, &o, 0, 3))
	_, err = fresh.Evaluate(tokens, tokens, 1, 4)
	require.NoError(t, err)
	require.Equal(t, want[3:], resume(t, fresh, &o, 3, 3))
}
