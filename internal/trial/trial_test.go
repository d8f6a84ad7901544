package trial

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/train"
)

func tiny() nn.Config {
	recipes := nn.ProfileFP8(scaling.TEDelayed, fp8.E5M2)
	return nn.Config{Vocab: 256, Dim: 16, Layers: 1, Heads: 2, Hidden: 24, Context: 8, FP8: &recipes}
}

func TestStepIsTheWholeStep(t *testing.T) {
	corpus, err := train.NewCorpus([]byte("she sells sea shells by the sea shore, the shells she sells are sea shells"), 33, 1)
	require.NoError(t, err)
	r, err := New("a run", tiny(), 1)
	require.NoError(t, err)
	before, err := r.HeldOut(t.Context(), corpus, 2, 2, 8)
	require.NoError(t, err)
	for step := range 30 {
		tokens, targets, err := corpus.Batch(step, 2, 8)
		require.NoError(t, err)
		f, err := r.Step(t.Context(), tokens, targets, 2, 8, 1e-2)
		require.NoError(t, err)
		require.Positive(t, f.GradientNorm)
		require.EqualValues(t, step+1, r.Optimizer.Steps())
		require.EqualValues(t, step+1, r.Model.Shared().Scaling().State().Histories.Step, "delayed scales have been told")
	}
	require.Positive(t, r.Time)
	after, err := r.HeldOut(t.Context(), corpus, 2, 2, 8)
	require.NoError(t, err)
	require.Less(t, after, before)

	tokens, targets, err := corpus.HeldOut(1, 2, 8)
	require.NoError(t, err)
	second, err := r.Model.Evaluate(t.Context(), tokens, targets, 2, 8)
	require.NoError(t, err)
	first, err := r.HeldOut(t.Context(), corpus, 1, 2, 8)
	require.NoError(t, err)
	require.InDelta(t, (first+float64(second))/2, after, 1e-12)
}

func TestParams(t *testing.T) {
	r, err := New("a run", tiny(), 1)
	require.NoError(t, err)
	n := 2*256*16 + 4*16*16 + 3*16*24 + 3*16 // embedding, head, attention, MLP, norms
	require.Equal(t, n, r.Params())
}

func TestBadConfig(t *testing.T) {
	_, err := New("a run", nn.Config{}, 1)
	require.ErrorContains(t, err, "Config.Vocab")
}

// TestErrorNamesTheRun: a learning rate that is none.
func TestErrorNamesTheRun(t *testing.T) {
	r, err := New("a run", tiny(), 1)
	require.NoError(t, err)
	_, err = r.Step(t.Context(), make([]int32, 8), make([]int32, 8), 1, 8, -1)
	require.ErrorContains(t, err, "a run: loss ")
}
