package train

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

// mixture is a small model of DeepSeek-V3's kind, whose gradients are rounded at random.
func mixture() nn.Config {
	cfg := small()
	cfg.KVHeads, cfg.Workers = 0, 1
	cfg.MLA = &nn.MLAConfig{QueryRank: 12, KVRank: 10, NoPE: 8, RoPE: 4, Value: 12}
	cfg.Dense = 1
	cfg.Experts = &nn.ExpertsConfig{Hidden: 20, Shared: 1, CapacityFactor: 1.25, Router: nn.RouterConfig{
		Experts: 6, TopK: 2, Scale: 2.5, Groups: 3, TopGroups: 2, BiasRate: 0.002, BalanceLoss: 0.001,
	}}
	recipe, err := nn.ParseRecipe("deepseek-v3")
	if err != nil {
		panic(err)
	}
	recipe.FP8.Stochastic = true
	recipe.Apply(&cfg, 3)
	return cfg
}

// TestMixtureOfExperts trains experts side by side, with a step that accumulates two batches
// and one that is dropped, saves them, and goes on to the same bits, biases of routers among
// them, however many replicas there are.
func TestMixtureOfExperts(t *testing.T) {
	newRun := func() (*nn.Llama, *optim.AdamW) {
		m, err := nn.NewLlama(mixture(), 5)
		require.NoError(t, err)
		return m, &optim.AdamW{Clip: 1, Moments: optim.Moments{Format: optim.MomentsBF16}}
	}
	steps := func(m *nn.Llama, o *optim.AdamW, replicas, from, n int) (losses []float32) {
		d, err := NewDataParallel(m, replicas, m.Replica)
		require.NoError(t, err)
		for step := from; step < from+n; step++ {
			for batch := range 1 + step%2 {
				loss, _, err := d.Gradients(t.Context(), 3, LlamaGradients(shardsOf(t, 3, step+batch), 1, 16))
				require.NoError(t, err)
				losses = append(losses, loss)
			}
			var tokens int64
			for _, n := range m.Shared().Scaling().State().Routers["model.layers.1.mlp.gate"].Load {
				tokens += n
			}
			require.EqualValues(t, (1+step%2)*3*16*2, tokens, "each choice counts once")
			if step == 2 {
				m.DropStep()
				continue
			}
			_, err = o.Step(t.Context(), m.Params(), 1e-2)
			require.NoError(t, err)
			m.EndStep()
		}
		return losses
	}
	path := filepath.Join(t.TempDir(), "run")
	m, o := newRun()
	steps(m, o, 1, 0, 2)
	require.NoError(t, SaveCheckpoint(t.Context(), path, m, o, Position{Step: 2}))
	want := steps(m, o, 1, 2, 2)
	for _, replicas := range []int{1, 2} {
		c, err := OpenCheckpoint(path)
		require.NoError(t, err)
		again, err := c.NewLlama(1)
		require.NoError(t, err)
		_, optimizer := newRun()
		require.NoError(t, c.Restore(context.Background(), again, optimizer))
		require.NoError(t, c.Close())
		require.NotEqual(t, make([]float32, 6), again.Blocks()[1].Experts.Router.Bias())
		require.Equal(t, want, steps(again, optimizer, replicas, 2, 2), "%d replicas", replicas)
		require.Equal(t, everythingOf(t, m, o), everythingOf(t, again, optimizer))
	}
}
