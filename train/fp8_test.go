package train

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/telemetry"
)

func TestFP8Training(t *testing.T) {
	n := 60
	if testing.Short() {
		n = 20
	}
	_, plain := steps(t, small(), n, nil)
	for name, f := range map[string]nn.FP8{
		"default":    nn.DefaultFP8(),
		"hybrid":     nn.ProfileFP8(scaling.TEBlock, fp8.E5M2),
		"per tensor": nn.ProfileFP8(scaling.TECurrent, fp8.E5M2),
		"delayed":    nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2),
		"row":        nn.ProfileFP8(scaling.TorchAORowwisePow2, fp8.E4M3),
		"mx":         nn.ProfileFP8(scaling.MXRCeil, fp8.E4M3),
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
	cfg := withFP8(small(), nn.ProfileFP8(scaling.TEBlock, fp8.E5M2))
	cfg.Smoothing = &swiglu.Smoothing{Exact: true}
	_, losses := steps(t, cfg, 4, nil)
	var bits []uint32
	for _, l := range losses {
		bits = append(bits, math.Float32bits(l))
	}
	require.Equal(t, []uint32{0x409bb99c, 0x40979d8e, 0x40921745, 0x408d68ec}, bits)
}

func TestFP8WorkersAndListeners(t *testing.T) {
	cfg := withFP8(small(), nn.DefaultFP8())
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
	m, _ := steps(t, withFP8(small(), nn.DefaultFP8()), 1, recorder)
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
	_, err := m.Loss(t.Context(), tokens, tokens, 1, 4)
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
	cfg := withFP8(small(), nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2))
	cfg.Smoothing = &swiglu.Smoothing{Delay: 2}
	saved, _ := steps(t, cfg, 3, nil)
	text, err := json.Marshal(saved.Shared().Scaling().State())
	require.NoError(t, err)

	restored, err := nn.NewLlama(cfg, 99)
	require.NoError(t, err)
	for i, p := range saved.Params() {
		copy(restored.Params()[i].Value, p.Value)
	}
	var state nn.ScalingState
	require.NoError(t, json.Unmarshal(text, &state))
	require.NoError(t, restored.Shared().Scaling().Restore(state))
	require.Equal(t, resume(t, saved, &optim.AdamW{}, 3, 3), resume(t, restored, &optim.AdamW{}, 3, 3))
}

func TestScalingStates(t *testing.T) {
	cfg := withFP8(small(), nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2))
	cfg.Smoothing = &swiglu.Smoothing{Delay: 2}
	a, _ := steps(t, cfg, 2, nil)
	b, _ := steps(t, cfg, 3, nil)
	both, err := nn.MergeScaling(a.Shared().Scaling().State(), b.Shared().Scaling().State())
	require.NoError(t, err)
	swapped, err := nn.MergeScaling(b.Shared().Scaling().State(), a.Shared().Scaling().State())
	require.NoError(t, err)
	require.Equal(t, both, swapped)
	require.NoError(t, a.Shared().Scaling().Restore(both))
	require.Equal(t, both, a.Shared().Scaling().State())

	_, err = nn.MergeScaling()
	require.ErrorContains(t, err, "no scaling state")
	before := a.Shared().Scaling().State()
	const name = "model.layers.1.mlp"
	bad := b.Shared().Scaling().State()
	delete(bad.Smoothers, name)
	require.ErrorContains(t, a.Shared().Scaling().Restore(bad), `there is no smoothing state of "model.layers.1.mlp"`)
	_, err = nn.MergeScaling(before, bad)
	require.ErrorContains(t, err, "worker 1")
	bad.Smoothers[name] = swiglu.State{Version: 9}
	require.ErrorContains(t, a.Shared().Scaling().Restore(bad), `"model.layers.1.mlp": swiglu: state of version 9`)
	bad = b.Shared().Scaling().State()
	bad.Histories.Version = 9
	require.ErrorContains(t, a.Shared().Scaling().Restore(bad), "scaling: state of version 9")
	bad.Version = 1
	require.ErrorIs(t, a.Shared().Scaling().Restore(bad), nn.ErrState)
	require.Equal(t, before, a.Shared().Scaling().State())
}

// TestEvaluateLeavesNoTrace: losses and delayed scales go on as if nothing had
// been evaluated.
func TestEvaluateLeavesNoTrace(t *testing.T) {
	cfg := withFP8(small(), nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2))
	cfg.Smoothing = &swiglu.Smoothing{Delay: 2}
	_, want := steps(t, cfg, 6, nil)

	recorder := telemetry.New()
	m, got := steps(t, cfg, 3, recorder)
	require.NoError(t, recorder.Flush())
	before := recorder.Totals()
	tokens := []int32{100, 3, 5, 127}
	_, err := m.Evaluate(t.Context(), tokens, tokens, 1, 4)
	require.NoError(t, err)
	require.Equal(t, before, recorder.Totals())
	require.ErrorContains(t, m.Backward(t.Context()), "without Loss")

	fresh, err := nn.NewLlama(cfg, 5)
	require.NoError(t, err)
	o := optim.AdamW{Clip: 1}
	require.Equal(t, got, resume(t, fresh, &o, 0, 3))
	_, err = fresh.Evaluate(t.Context(), tokens, tokens, 1, 4)
	require.NoError(t, err)
	require.Equal(t, want[3:], resume(t, fresh, &o, 3, 3))
}
