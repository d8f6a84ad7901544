package train

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

// warm returns a model of delayed scales that has taken two steps.
func warm(t *testing.T, run string) *nn.Llama {
	model, optimizer := newRun(t, runs()[run].Config, optim.Moments{}, 5)
	resume(t, model, optimizer, 0, 2)
	model.ZeroGrad()
	return model
}

// whole joins shards to a batch.
func whole(shards []Shard) (tokens, targets []int32) {
	for _, s := range shards {
		tokens, targets = append(tokens, s.Tokens...), append(targets, s.Targets...)
	}
	return tokens, targets
}

func accumulate(t *testing.T, m *nn.Llama, shards []Shard, scale float32) {
	for _, s := range shards {
		_, err := m.Loss(t.Context(), s.Tokens, s.Targets, 1, 16)
		require.NoError(t, err)
		require.NoError(t, m.BackwardScaled(t.Context(), scale))
	}
}

// TestAccumulatedAmax: after four micro-batches each history has one amax more, that
// of the batch that they are; and gradients that add up to its gradients.
func TestAccumulatedAmax(t *testing.T) {
	shards := shardsOf(t, 4, 2)
	big := warm(t, "fp8 delayed")
	before := big.Shared().Scaling().State()
	tokens, targets := whole(shards)
	_, err := big.Loss(t.Context(), tokens, targets, 4, 16)
	require.NoError(t, err)
	require.NoError(t, big.Backward(t.Context()))

	micro := warm(t, "fp8 delayed")
	require.Equal(t, before, micro.Shared().Scaling().State())
	accumulate(t, micro, shards, 0.25)
	require.Equal(t, big.Shared().Scaling().State(), micro.Shared().Scaling().State(), "while the step lasts")
	big.EndStep()
	micro.EndStep()
	after := micro.Shared().Scaling().State()
	require.Equal(t, big.Shared().Scaling().State(), after)
	for name, h := range after.Histories.Histories {
		old, h := before.Histories.Histories[name].Blocks[0], h.Blocks[0]
		require.Equal(t, old.Past[:len(old.Past)-1], h.Past[1:], "%s: one step more", name)
		require.Positive(t, h.Past[0], name)
		require.Zero(t, h.Current, name)
	}
	for i, p := range big.Params() {
		var diff, norm float64
		for j, g := range p.Grad {
			d := float64(g) - float64(micro.Params()[i].Grad[j])
			diff, norm = diff+d*d, norm+float64(g)*float64(g)
		}
		require.Less(t, diff, 1e-9*norm, p.Name)
	}
}

// TestAmaxIsTheLargestOfAllMicroBatches, wherever it is, and not the last.
func TestAmaxIsTheLargestOfAllMicroBatches(t *testing.T) {
	shards := shardsOf(t, 3, 2)
	var alone []nn.ScalingState
	for i := range shards {
		m := warm(t, "smooth delayed")
		accumulate(t, m, shards[i:i+1], 1)
		alone = append(alone, m.Shared().Scaling().State())
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 0, 1}, {1, 2, 0}} {
		m := warm(t, "smooth delayed")
		for _, i := range order {
			accumulate(t, m, shards[i:i+1], 1)
		}
		merged, err := nn.MergeScaling(alone...)
		require.NoError(t, err)
		require.Equal(t, merged, m.Shared().Scaling().State())
	}
}

// TestRecomputationRecordsOnce: a forward pass that is run again before its backward
// pass, as to save memory, changes no history; nor does an evaluation lose what was
// recorded.
func TestRecomputationRecordsOnce(t *testing.T) {
	shards := shardsOf(t, 2, 2)
	want := warm(t, "smooth delayed")
	accumulate(t, want, shards, 1)
	want.EndStep()

	got := warm(t, "smooth delayed")
	for _, s := range shards {
		_, err := got.Loss(t.Context(), s.Tokens, s.Targets, 1, 16)
		require.NoError(t, err)
		_, err = got.Evaluate(t.Context(), s.Targets, s.Tokens, 1, 16)
		require.NoError(t, err)
		accumulate(t, got, []Shard{s}, 1)
	}
	got.EndStep()
	require.Equal(t, want.Shared().Scaling().State(), got.Shared().Scaling().State())
	for i, p := range want.Params() {
		require.Equal(t, p.Grad, got.Params()[i].Grad, p.Name)
	}
}

// TestDropStep forgets a step, and its end changes nothing.
func TestDropStep(t *testing.T) {
	m := warm(t, "smooth delayed")
	before := m.Shared().Scaling().State()
	accumulate(t, m, shardsOf(t, 2, 2), 1)
	require.NotEqual(t, before, m.Shared().Scaling().State())
	m.DropStep()
	require.Equal(t, before, m.Shared().Scaling().State())
}
