package train

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/telemetry"
)

// TestFP8ActivationsKeepBits under every profile, and whatever else there is.
func TestFP8ActivationsKeepBits(t *testing.T) {
	configs := map[string]nn.Config{}
	profiles := scaling.ProfilesFor(fp8.E5M2)
	if testing.Short() {
		profiles = []scaling.Profile{scaling.TEDelayed, scaling.TECurrent, scaling.MXRCeil}
	}
	for _, p := range profiles {
		configs[string(p)] = withFP8(ragged(), nn.ProfileFP8(p, fp8.E5M2))
	}
	configs["stochastic"] = withFP8(ragged(), randomFP8())
	configs["gradients at random"] = withFP8(ragged(), stochasticFP8(nn.DefaultFP8(), 3))
	mixed := sixRecipes()
	mixed.WeightGradient.B = scaling.Recipe{Profile: scaling.TEDelayed}
	configs["recipes that differ"] = withFP8(ragged(), mixed)
	for _, s := range []swiglu.Smoothing{{}, {Axis: swiglu.PerToken, Exact: true}, {Delay: 2}} {
		cfg := withFP8(ragged(), nn.DefaultFP8())
		cfg.Smoothing = &s
		configs[fmt.Sprintf("%+v", s)] = cfg
	}
	for name, cfg := range configs {
		want := trained(t, cfg)
		cfg.Workers = 3
		requireSameRun(t, want, trained(t, kept(cfg, nn.ActivationsFP8)), name)
	}
}

// TestKeptAmaxOfMicroBatches: gradients that add up, a forward pass that is run
// again and one that is evaluated give histories that float32 activations give.
func TestKeptAmaxOfMicroBatches(t *testing.T) {
	cfg := runs()["smooth delayed"].Config
	shards := shardsOf(t, 3, 2)
	var want *nn.Llama
	for _, f := range []nn.ActivationFormat{nn.ActivationsFP32, nn.ActivationsFP8} {
		model, optimizer := newRun(t, kept(cfg, f), optim.Moments{}, 5)
		resume(t, model, optimizer, 0, 2)
		for step, order := range [][]int{{0, 1, 2}, {2, 0, 1}} {
			model.ZeroGrad()
			for _, i := range order {
				s := shards[i]
				_, err := model.Loss(t.Context(), s.Tokens, s.Targets, 1, 16)
				require.NoError(t, err)
				if step == 1 {
					_, err = model.Evaluate(t.Context(), s.Targets, s.Tokens, 1, 16)
					require.NoError(t, err)
				}
				accumulate(t, model, shards[i:i+1], 0.5)
			}
			model.EndStep()
		}
		if want == nil {
			want = model
			continue
		}
		require.Equal(t, want.Shared().Scaling().State(), model.Shared().Scaling().State())
		for i, p := range want.Params() {
			require.Equal(t, p.Grad, model.Params()[i].Grad, p.Name)
		}
		model.DropStep()
		require.Equal(t, want.Shared().Scaling().State(), model.Shared().Scaling().State(), "nothing is left of a step that has ended")
	}
}

// TestKeptIsHeard: whoever listens hears of every operand of every layer, however
// many share it, and of the branches that are rounded.
func TestKeptIsHeard(t *testing.T) {
	hear := func(f nn.ActivationFormat) map[string]fp8.Stats {
		r := telemetry.New()
		steps(t, kept(withFP8(small(), nn.DefaultFP8()), f), 1, r)
		require.NoError(t, r.Flush())
		heard := map[string]fp8.Stats{}
		for _, total := range r.Totals() {
			heard[total.Tensor+" "+total.Op] = total.Stats
		}
		return heard
	}
	want := hear(nn.ActivationsFP32)
	require.Equal(t, want, hear(nn.ActivationsFP8))
	got := hear(nn.ActivationsFP8SwiGLU)
	require.Len(t, got, len(want)+2*2)
	for _, name := range []string{"gate_proj", "up_proj"} {
		require.EqualValues(t, 64*48, got["model.layers.1.mlp."+name+".output swiglu"].Elements)
	}
}

// TestRoundedActivationsTrain and give the same bits everywhere: the losses were computed
// once, on amd64.
func TestRoundedActivationsTrain(t *testing.T) {
	swiGLU := kept(withFP8(small(), nn.ProfileFP8(scaling.TEBlock, fp8.E5M2)), nn.ActivationsFP8SwiGLU)
	swiGLU.Smoothing = &swiglu.Smoothing{Exact: true}
	r, err := nn.ParseRecipe("deepseek-v3")
	require.NoError(t, err)
	deepSeek := small()
	r.Apply(&deepSeek, 0)
	for _, test := range []struct {
		cfg  nn.Config
		bits []uint32
	}{
		{swiGLU, []uint32{0x409bb99c, 0x40979f2f, 0x409214fc, 0x408d64a2}},
		{deepSeek, []uint32{0x409bb8e4, 0x40979c86, 0x40921399, 0x408d6061}},
	} {
		t.Run(test.cfg.Activations.String(), func(t *testing.T) { testRoundedActivations(t, test.cfg, test.bits) })
	}
}

func testRoundedActivations(t *testing.T, cfg nn.Config, wantBits []uint32) {
	n := 20
	if testing.Short() {
		n = 6
	}
	_, losses := steps(t, cfg, n, nil)
	var bits []uint32
	for _, l := range losses[:4] {
		bits = append(bits, math.Float32bits(l))
	}
	require.Equal(t, wantBits, bits)
	_, want := steps(t, kept(cfg, nn.ActivationsFP32), n, nil)
	require.Equal(t, want[0], losses[0], "the forward pass rounds nothing")
	require.NotEqual(t, want[1:], losses[1:], "the backward pass does")
	require.InEpsilon(t, want[n-1], losses[n-1], 0.02)
	for _, workers := range []int{1, 3} {
		cfg.Workers = workers
		_, got := steps(t, cfg, 4, nil)
		require.Equal(t, losses[:4], got, "%d workers", workers)
	}
}

// TestReplicasKeepInFP8: as many replicas as there may be give the bits of one.
func TestReplicasKeepInFP8(t *testing.T) {
	for _, f := range nn.ActivationFormats() {
		var want map[string][]byte
		for _, replicas := range []int{1, 3} {
			model, optimizer := newRun(t, kept(runs()["smooth delayed"].Config, f), optim.Moments{}, 5)
			d, err := NewDataParallel(model, replicas, model.Replica)
			require.NoError(t, err)
			for step := range 3 {
				_, _, err := gradients(t, d, shardsOf(t, 4, step))
				require.NoError(t, err)
				_, err = optimizer.Step(t.Context(), model.Params(), 3e-3)
				require.NoError(t, err)
				model.EndStep()
			}
			for _, r := range d.replicas[1:] {
				require.Equal(t, f, r.Config().Activations)
			}
			if want == nil {
				want = bitsOf(model, optimizer)
			}
			requireSameRun(t, want, bitsOf(model, optimizer), f)
		}
	}
}

// TestActivationsInCheckpoint: the format is saved and compared.
func TestActivationsInCheckpoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	cfg := withFP8(small(), nn.DefaultFP8())
	model, optimizer := newRun(t, kept(cfg, nn.ActivationsFP8), optim.Moments{}, 5)
	require.NoError(t, SaveCheckpoint(t.Context(), path, model, optimizer, Position{}))
	c, err := OpenCheckpoint(path)
	require.NoError(t, err)
	defer c.Close()
	saved, err := nn.ParseConfig(c.Model)
	require.NoError(t, err)
	require.Equal(t, nn.ActivationsFP8, saved.Activations)
	wide, _ := newRun(t, cfg, optim.Moments{}, 5)
	_, err = LoadCheckpoint(t.Context(), path, wide, optimizer)
	require.ErrorContains(t, err, "model.config.activations was \"fp8\" when it was saved and is \"fp32\"")
}
