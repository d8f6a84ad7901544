package train

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

func TestRoundingTraining(t *testing.T) {
	n := 40
	if testing.Short() {
		n = 20
	}
	_, plain := steps(t, small(), n, nil)
	loss := map[string]float64{}
	for name, r := range map[string]nn.Rounding{
		"bf16":   nn.DefaultRounding(nn.NarrowBF16),
		"e4m3":   nn.DefaultRounding(nn.NarrowE4M3),
		"e3m2":   nn.DefaultRounding(nn.NarrowE3M2),
		"e2m1":   nn.DefaultRounding(nn.NarrowE2M1),
		"random": {Gradient: nn.Narrowing{Format: nn.NarrowE2M1}, Stochastic: true},
		"none":   {Stochastic: true},
	} {
		_, losses := steps(t, withRounding(small(), r), n, nil)
		require.Equal(t, name == "none", losses[1] == plain[1], "%s: rounding must show", name)
		require.Less(t, losses[n-1], losses[0]*0.85, "%s: must learn", name)
		loss[name] = math.Abs(float64(losses[n-1]-plain[n-1])) / float64(plain[n-1])
	}
	require.Less(t, loss["bf16"], 0.005)
	require.Less(t, loss["e4m3"], 0.03)
	require.Zero(t, loss["none"])
}

// TestRoundingSameBitsEverywhere compares with losses that were computed once, on
// amd64; workers do not matter.
func TestRoundingSameBitsEverywhere(t *testing.T) {
	random := threeNarrowings()
	random.Stochastic, random.BF16Results = true, true
	bf16 := nn.DefaultRounding(nn.NarrowBF16)
	bf16.Stochastic, bf16.Seed = true, 1
	hybrid := nn.ProfileFP8("", fp8.E5M2)
	for name, run := range map[string]struct {
		nn.Config
		want []uint32
	}{
		"rounding": {withRounding(small(), random), []uint32{0x409bb745, 0x40979e93, 0x409212a9}},
		"bf16":     {withRounding(small(), bf16), []uint32{0x409bb6c7, 0x40979ed9, 0x40921463}},
		"fp8":      {withFP8(small(), stochasticFP8(hybrid, 2)), []uint32{0x409bb62a, 0x40979bb1, 0x4092118a}},
	} {
		for _, workers := range []int{1, 3} {
			run.Config.Workers = workers
			_, losses := steps(t, run.Config, 3, nil)
			var bits []uint32
			for _, l := range losses {
				bits = append(bits, math.Float32bits(l))
			}
			require.Equal(t, run.want, bits, "%s: %#x", name, bits)
		}
	}
}

// TestCheckpointComparesRounding, and what is random in gradients.
func TestCheckpointComparesRounding(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	save := func(cfg nn.Config) {
		model, optimizer := newRun(t, cfg, optim.Moments{}, 5)
		require.NoError(t, SaveCheckpoint(t.Context(), path, model, optimizer, Position{}))
	}
	load := func(cfg nn.Config) error {
		model, optimizer := newRun(t, cfg, optim.Moments{}, 5)
		_, err := LoadCheckpoint(t.Context(), path, model, optimizer)
		return err
	}
	six := withRounding(small(), nn.DefaultRounding(nn.NarrowE3M2))
	save(six)
	require.NoError(t, load(six))
	require.ErrorContains(t, load(withRounding(small(), nn.DefaultRounding(nn.NarrowE2M3))), "model.config.rounding")
	require.ErrorContains(t, load(small()), "model.config.rounding")
	save(withFP8(small(), stochasticFP8(nn.DefaultFP8(), math.MaxUint64)))
	require.NoError(t, load(withFP8(small(), stochasticFP8(nn.DefaultFP8(), math.MaxUint64))))
	require.ErrorContains(t, load(withFP8(small(), stochasticFP8(nn.DefaultFP8(), math.MaxUint64-1))), "model.config.fp8")
	require.ErrorContains(t, load(withFP8(small(), nn.DefaultFP8())), "model.config.fp8")
}
