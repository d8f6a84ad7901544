package layers

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/train"
)

// zeroSteps does steps of a run.
func zeroSteps(t *testing.T, z *Zero[*nn.Llama], from, to int) (losses []float32) {
	t.Helper()
	for step := from; step < to; step++ {
		loss, _, err := z.Step(t.Context(), train.LlamaGradients(shards(step, z.Ranks()), 2, 6), 1e-2)
		require.NoError(t, err)
		losses = append(losses, loss)
	}
	return losses
}

func newZero(
	t *testing.T, ranks int, optimizer func() *optim.AdamW, o ZeroOptions, seed uint64,
) *Zero[*nn.Llama] {
	t.Helper()
	m, err := nn.NewLlama(tiny(), seed)
	require.NoError(t, err)
	z, err := NewZero(m, ranks, m.Replica, optimizer, o)
	require.NoError(t, err)
	return z
}

// saveZero writes a checkpoint of a run after two steps.
func saveZero(t *testing.T, z *Zero[*nn.Llama], path string) {
	t.Helper()
	var snapshots []*train.Snapshot
	for range z.Ranks() {
		snapshots = append(snapshots, &train.Snapshot{Workers: 1})
	}
	require.NoError(t, z.Take(train.Position{Step: 2}, snapshots...))
	require.NoError(t, train.Directory{Path: path}.Save(t.Context(), snapshots...))
}

func resumeZero(t *testing.T, path string, use func(c *train.Checkpoint) error) {
	t.Helper()
	passedOver, err := train.Directory{Path: path}.Resume(use)
	require.NoError(t, err)
	require.Empty(t, passedOver)
}

// weightsOf returns the FP32 weights that ranks have together, and the scales of the last.
func weightsOf(z *Zero[*nn.Llama]) (weights [][]float32, scales string) {
	for i := range z.Model(0).Params() {
		var whole []float32
		for r := range z.Ranks() {
			if r == 0 || z.o.Stage > 0 {
				whole = append(whole, z.Shards(r)[i].Value...)
			}
		}
		weights = append(weights, whole)
	}
	return weights, fmt.Sprint(z.Model(z.Ranks() - 1).Shared().Scaling().State())
}

// TestZeroCheckpoint: a run that is written by some ranks with one stage goes on by other
// ranks with another to the bits of one rank that changes its number of shards, and is
// read by one rank as well.
func TestZeroCheckpoint(t *testing.T) {
	const steps = 2 // before, and after
	blocks := optim.Moments{Format: optim.MomentsFP8, Block: 2}
	for _, c := range []struct {
		from, fromStage, to, toStage int
		moments                      optim.Moments
	}{
		{3, 1, 2, 3, optim.Moments{}}, {2, 3, 5, 2, optim.Moments{}}, {1, 2, 4, 0, optim.Moments{}},
		{4, 0, 3, 1, optim.Moments{}}, {5, 2, 1, 3, optim.Moments{}}, {3, 3, 3, 3, optim.Moments{}},
		{2, 1, 4, 3, blocks}, {4, 2, 2, 0, blocks},
		{3, 2, 2, 1, optim.Moments{Format: optim.MomentsBF16}},
	} {
		what := fmt.Sprint(c)
		adamW := func() *optim.AdamW {
			o := adamW()
			o.Moments = c.moments
			return o
		}
		m, err := nn.NewLlama(tiny(), 5)
		require.NoError(t, err)
		d, err := train.NewDataParallel(m, 2, m.Replica)
		require.NoError(t, err)
		d.Reducer.Division = collective.DividePost
		one := adamW()
		var losses []float32
		for step := range 2 * steps {
			workers := c.from
			if step >= steps {
				workers = c.to
			}
			do := train.LlamaGradients(shards(step, workers), 2, 6)
			loss, _, err := d.Gradients(t.Context(), workers, do)
			require.NoError(t, err)
			_, err = one.Step(t.Context(), m.Params(), 1e-2)
			require.NoError(t, err)
			m.EndStep()
			losses = append(losses, loss)
		}

		root := t.TempDir()
		first := newZero(t, c.from, adamW, ZeroOptions{Stage: c.fromStage}, 5)
		require.Equal(t, losses[:steps], zeroSteps(t, first, 0, steps), what)
		saveZero(t, first, root)
		other := newZero(t, c.to, adamW, ZeroOptions{Stage: c.toStage}, 9)
		zeroSteps(t, other, 7, 8) // moments that are not those of the checkpoint
		resumeZero(t, root, func(c *train.Checkpoint) error { return other.Restore(t.Context(), c) })
		for r := range c.to {
			for i, p := range other.Model(r).Params() {
				before, _ := weightsOf(first)
				if c.toStage == 3 {
					require.True(t, math.IsNaN(float64(p.Value[len(p.Value)-1])), what)
					continue
				}
				requireSame(t, before[i], p.Value, what)
			}
		}
		require.Equal(t, losses[steps:], zeroSteps(t, other, steps, 2*steps), what)
		weights, scales := weightsOf(other)
		for i, p := range m.Params() {
			requireSame(t, p.Value, weights[i], what)
		}
		require.Equal(t, fmt.Sprint(m.Shared().Scaling().State()), scales, what)

		whole, err := nn.NewLlama(tiny(), 1)
		require.NoError(t, err)
		o := adamW()
		resumeZero(t, root, func(c *train.Checkpoint) error { return c.Restore(t.Context(), whole, o) })
		before, _ := weightsOf(first)
		for i, p := range whole.Params() {
			requireSame(t, before[i], p.Value, what)
		}
		require.EqualValues(t, steps, o.Steps())
	}
}

// TestZeroCheckpointWeights: ranks that compute with rounded weights keep FP32 in a
// checkpoint, and round again.
func TestZeroCheckpointWeights(t *testing.T) {
	o := ZeroOptions{Stage: 2, Weights: wire(t, "e4m3-token"), Rows: 2}
	root := t.TempDir()
	first := newZero(t, 3, adamW, o, 5)
	zeroSteps(t, first, 0, 2)
	saveZero(t, first, root)
	again := newZero(t, 3, adamW, o, 6)
	resumeZero(t, root, func(c *train.Checkpoint) error { return again.Restore(t.Context(), c) })
	require.Equal(t, zeroSteps(t, first, 2, 4), zeroSteps(t, again, 2, 4))
	want, _ := weightsOf(first)
	got, _ := weightsOf(again)
	require.Equal(t, want, got)
}

func TestZeroCheckpointErrors(t *testing.T) {
	snapshots := []*train.Snapshot{new(train.Snapshot), new(train.Snapshot)}
	for says, o := range map[string]ZeroOptions{
		"ZeroOptions.Amax is step-behind": {Amax: AmaxStepBehind},
		"ZeroOptions.Amax is never":       {Stage: 1, Amax: AmaxNever},
		"ZeroOptions.Gradients.Amax is late": {
			Gradients: collective.Exchange{Wire: wire(t, "e4m3-tensor"), Amax: collective.AmaxLate},
		},
	} {
		err := newZero(t, 2, adamW, o, 5).Take(train.Position{}, snapshots...)
		require.ErrorIs(t, err, collective.ErrInput)
		require.ErrorContains(t, err, says)
	}
	z := newZero(t, 2, adamW, ZeroOptions{Stage: 1}, 5)
	require.ErrorContains(t, z.Take(train.Position{}, snapshots[0]),
		"Take is given 1 snapshots: there are 2 ranks")
	require.ErrorContains(t, z.Take(train.Position{}, snapshots[0], nil),
		"the snapshot of rank 1 is nil")
	require.ErrorIs(t, z.Take(train.Position{Step: -1}, snapshots...), train.ErrInput)

	blocks := func() *optim.AdamW {
		return &optim.AdamW{Workers: 1, Moments: optim.Moments{Format: optim.MomentsFP8, Block: 16}}
	}
	z = newZero(t, 2, blocks, ZeroOptions{Stage: 1, Rows: 2}, 5)
	err := z.Take(train.Position{}, snapshots...)
	require.ErrorIs(t, err, train.ErrInput)
	require.ErrorContains(t, err, "rank 0: train: taking a snapshot: the piece of model.layers.0.")
	require.ErrorContains(t, err, "at element 4: moments in blocks of 16")

	root := t.TempDir()
	z = newZero(t, 2, adamW, ZeroOptions{Stage: 1}, 5)
	zeroSteps(t, z, 0, 1)
	saveZero(t, z, root)
	otherClip := func() *optim.AdamW { return &optim.AdamW{Clip: 2} }
	other := newZero(t, 3, otherClip, ZeroOptions{Stage: 2}, 5)
	_, err = train.Directory{Path: root}.Resume(func(c *train.Checkpoint) error {
		return other.Restore(context.Background(), c)
	})
	require.ErrorIs(t, err, train.ErrMismatch)
	require.ErrorContains(t, err, "rank 0: ")
}
