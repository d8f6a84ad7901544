package layers

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/train"
)

func newLlama(t *testing.T, cfg nn.Config, l Layout, seed uint64, o func() *optim.AdamW) *Llama {
	t.Helper()
	whole, err := nn.NewLlama(cfg, seed)
	require.NoError(t, err)
	m, err := NewLlama(whole, l, o)
	require.NoError(t, err)
	return m
}

// stepLlama does steps of a run, and adds what it has then.
func stepLlama(t *testing.T, m *Llama, run *ofLlama, from, to int) {
	t.Helper()
	const n = 4
	for step := from; step < to; step++ {
		tokens, targets := batchOf(step, n)
		loss, norm, err := m.Step(t.Context(), tokens, targets, 2*n, 6, 1e-2)
		require.NoError(t, err)
		run.losses, run.norms = append(run.losses, loss), append(run.norms, norm)
	}
	whole, err := nn.NewZeroLlama(m.cfg)
	require.NoError(t, err)
	require.NoError(t, m.Store(whole))
	run.weights, run.grads = map[string][]float32{}, map[string][]float32{}
	for _, p := range whole.Params() {
		run.weights[p.Name], run.grads[p.Name] = p.Value, p.Grad
	}
}

func snapshotsFor(m *Llama, beside bool) (all []*train.Snapshot) {
	for range m.Layout().Ranks() {
		all = append(all, &train.Snapshot{Workers: 1, Beside: beside})
	}
	return all
}

// TestLlamaCheckpoint: a run that is written under one layout while it goes on, and read
// under another, goes on with the bits of the twin of one rank that was never interrupted:
// weights, moments, histories, biases of routers and random rounding. Snapshots of all ranks
// together have everything once.
func TestLlamaCheckpoint(t *testing.T) {
	fp8Moments := func() *optim.AdamW {
		o := adamW()
		o.Moments = optim.Moments{Format: optim.MomentsFP8, Block: 4, Stochastic: true, Seed: 3}
		return o
	}
	for i, c := range []struct {
		cfg      nn.Config
		adamW    func() *optim.AdamW
		from, to Layout
	}{
		{delayedExperts(), adamW,
			Layout{Data: 4, Expert: 2, Tensor: 2, Slices: 4, Shards: 4, Zero: 2},
			Layout{Pipeline: 2, Tensor: 4, Slices: 4, Shards: 4}},
		{delayedExperts(), adamW,
			Layout{Data: 2, Expert: 2, Tensor: 2, Pipeline: 2, Slices: 2, Shards: 4, Sequence: true, Zero: 3},
			Layout{Data: 4, Expert: 4, Slices: 2, Shards: 4, Sequence: true, Zero: 1}},
		{tiedModel(), adamW,
			Layout{Pipeline: 2, Data: 2, Slices: 2, Shards: 4, Micro: 2, Zero: 3},
			Layout{Pipeline: 2, Chunks: 2, Tensor: 2, Slices: 2, Shards: 4, Micro: 2}},
		{expertsModel(), adamW,
			Layout{Tensor: 2, Slices: 4, Shards: 4},
			Layout{Data: 2, Expert: 2, Tensor: 2, Pipeline: 2, Slices: 4, Shards: 4, Zero: 3}},
		{delayedModel(true), fp8Moments,
			Layout{Data: 2, Slices: 2, Shards: 4, Sequence: true, Micro: 2},
			Layout{Data: 4, Tensor: 2, Pipeline: 2, Slices: 2, Shards: 4, Sequence: true, Micro: 2}},
	} {
		if testing.Short() && i%2 == 1 {
			continue
		}
		what := fmt.Sprintf("%+v to %+v", c.from, c.to)
		var want, got ofLlama
		twin := c.from.Twin()
		twin.Zero = 0
		one := newLlama(t, c.cfg, twin, 5, c.adamW)
		stepLlama(t, one, &want, 0, 4)

		first := newLlama(t, c.cfg, c.from, 5, c.adamW)
		stepLlama(t, first, &got, 0, 2)
		snapshots := snapshotsFor(first, true)
		root := t.TempDir()
		var saver train.Saver
		_, err := saver.Save(t.Context(), func() error {
			return first.Take(train.Position{Step: 2}, snapshots...)
		}, func(ctx context.Context) error {
			return train.Directory{Path: root}.Save(ctx, snapshots...)
		})
		require.NoError(t, err)
		stepLlama(t, first, new(ofLlama), 2, 3) // while it is written
		require.NoError(t, saver.Close())

		params, _, bytes := 0, 0, int64(0)
		for _, p := range first.whole.Params {
			params += p.Rows * p.Cols
		}
		for _, s := range snapshots {
			bytes += s.Bytes()
		}
		if c.adamW().Moments == (optim.Moments{}) {
			require.EqualValues(t, 12*params, bytes, what)
		} else {
			require.Less(t, bytes, int64(11*params), what)
		}

		other := newLlama(t, c.cfg, c.to, 9, c.adamW)
		stepLlama(t, other, new(ofLlama), 7, 8) // has moments, histories and biases of its own
		tokens, targets := batchOf(0, 4)
		_, err = other.Evaluate(t.Context(), tokens, targets, 8, 6) // layers have its weights
		require.NoError(t, err)
		resumeZero(t, root, func(c *train.Checkpoint) error {
			require.Equal(t, 2, c.Position.Step)
			return other.Restore(t.Context(), c)
		})
		stepLlama(t, other, &got, 2, 4)
		requireSameRun(t, want, got, what)
		require.Equal(t, fmt.Sprint(joined(one.scales(), sameName)),
			fmt.Sprint(joined(other.scales(), sameName)), what)
	}
}

func tiedModel() nn.Config {
	c := denseModel()
	c.Layers, c.TieHead = 4, true
	return c
}

// TestLlamaCheckpointOfOne: with one slice a checkpoint is that of the nn.Llama and its
// optimizer, and the other way around.
func TestLlamaCheckpointOfOne(t *testing.T) {
	cfg := delayedModel(true)
	cfg.Experts, cfg.Smoothing = expertsModel().Experts, nil
	l := Layout{Data: 2, Expert: 2, Pipeline: 2, Zero: 2}
	var run ofLlama
	m := newLlama(t, cfg, l, 5, adamW)
	stepLlama(t, m, &run, 0, 2)
	root := t.TempDir()
	snapshots := snapshotsFor(m, false)
	require.NoError(t, m.Take(train.Position{Step: 2}, snapshots...))
	require.NoError(t, train.Directory{Path: root}.Save(t.Context(), snapshots...))

	one, err := nn.NewLlama(cfg, 1)
	require.NoError(t, err)
	o := adamW()
	resumeZero(t, root, func(c *train.Checkpoint) error { return c.Restore(t.Context(), one, o) })
	for _, p := range one.Params() {
		requireSame(t, run.weights[p.Name], p.Value, p.Name)
	}
	require.EqualValues(t, 2, o.Steps())

	path := root + "/one.safetensors"
	require.NoError(t, train.SaveCheckpoint(t.Context(), path, one, o, train.Position{Step: 2}))
	again := newLlama(t, cfg, Layout{Shards: 2}, 9, adamW)
	c, err := train.OpenCheckpoint(path)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, again.Restore(t.Context(), c))
	var want, got ofLlama
	stepLlama(t, m, &want, 2, 4)
	stepLlama(t, again, &got, 2, 4)
	requireSameRun(t, want, got, "from one")
}

func TestLlamaCheckpointErrors(t *testing.T) {
	one := new(train.Snapshot)
	l := Layout{Slices: 2}
	m := newLlama(t, delayedModel(false), l, 5, adamW)
	require.EqualError(t, m.Take(train.Position{}), "layers: Take is given 0 snapshots: there are 1 ranks")
	require.EqualError(t, m.Take(train.Position{}, nil), "layers: Take: the snapshot of rank 0 is nil")
	tokens, targets := batchOf(0, 4)
	_, _, err := m.Gradients(t.Context(), tokens, targets, 8, 6)
	require.NoError(t, err)
	require.EqualError(t, m.Take(train.Position{}, one),
		"layers: Take between Gradients and Move: a checkpoint has no gradients")
	require.NoError(t, m.Move(t.Context(), 0.1))
	late := l
	late.Exchanges = map[string]collective.Exchange{shardGradients: {Wire: wire(t, "e4m3-tensor"), Amax: collective.AmaxLate}}
	require.EqualError(t, newLlama(t, denseModel(), late, 5, adamW).Take(train.Position{}, one),
		`layers: Layout.Exchanges["gradient"].Amax is late: a checkpoint does not have the amaxes of the step before`)
	require.EqualError(t, newLlama(t, denseModel(), l, 5, nil).Take(train.Position{}, one),
		"layers: Take without optimizers")

	root := t.TempDir()
	require.NoError(t, m.Take(train.Position{Step: 1}, one))
	part := root + "/part"
	require.NoError(t, one.SavePart(t.Context(), part))
	require.NoError(t, one.Commit(t.Context(), part))
	c, err := train.OpenCheckpoint(part)
	require.NoError(t, err)
	defer c.Close()
	require.EqualError(t, newLlama(t, denseModel(), l, 5, nil).Restore(t.Context(), c),
		"layers: Restore without optimizers")
	saved := c.Scaling
	for says, other := range map[string]*Llama{
		"model.config.slices was 2 when it was saved and is 4": newLlama(t, delayedModel(false), Layout{Slices: 4}, 5, adamW),
		"model.config.model.config.":                           newLlama(t, denseModel(), l, 5, adamW),
		"it was saved and is of kind \"llama\"":                newLlama(t, denseModel(), Layout{}, 5, adamW),
		`scales of "x": no rank has any`:                       newLlama(t, delayedModel(false), l, 5, adamW),
		"rank 1: nn: there is no scaling history of":           newLlama(t, delayedModel(false), Layout{Slices: 2, Tensor: 2}, 5, adamW),
	} {
		c.Scaling = saved
		c.Scaling.Histories.Histories = maps.Clone(saved.Histories.Histories)
		switch {
		case strings.Contains(says, `"x"`):
			c.Scaling.Histories.Histories["x"] = scaling.HistoryState{}
		case strings.Contains(says, "no scaling history"):
			maps.DeleteFunc(c.Scaling.Histories.Histories, func(name string, _ scaling.HistoryState) bool {
				return strings.Contains(name, ".slice.1")
			})
		}
		before := fmt.Sprint(joined(other.scales(), sameName))
		err := other.Restore(t.Context(), c)
		require.ErrorIs(t, err, train.ErrMismatch)
		require.ErrorContains(t, err, says)
		require.Equal(t, before, fmt.Sprint(joined(other.scales(), sameName)))
	}
}
