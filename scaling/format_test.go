package scaling_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// A scale for E5M2 would saturate E4M3: a history goes with one format and one
// way of delaying only, wherever it comes from.
func TestHistoryGoesWithItsRecipe(t *testing.T) {
	wide, narrow := scaling.TEDelayed.Recipe(scaling.Gradient), scaling.TEDelayed.Recipe(scaling.Gradient)
	wide.Format = fp8.E5M2
	margin := narrow
	margin.Delayed.Margin = 1

	var hs scaling.Histories
	h, err := hs.Get("dy", wide)
	require.NoError(t, err)
	_, err = hs.Get("dy", narrow)
	require.ErrorContains(t, err, `tensor "dy": scaling: recipe te-delayed E4M3 tensor`)
	require.ErrorContains(t, err, "cannot use the history of E5M2")

	for _, r := range []scaling.Recipe{narrow, margin} {
		x := &tensor.Tensor{Name: "dy", Shape: []int{1}}
		err = scaling.Quantize(t.Context(), x, []float32{1}, scaling.Quantizer{Recipe: r, History: h})
		require.ErrorContains(t, err, `tensor "dy": scaling: recipe`)
		require.Nil(t, x.Codes)
	}

	state := hs.State()
	var other scaling.Histories
	require.NoError(t, other.Restore(state))
	_, err = other.Get("dy", narrow)
	require.ErrorContains(t, err, `state of "dy" is of E5M2 tensor, its history is of E4M3 tensor`)

	var live scaling.Histories
	kept, err := live.Get("dy", narrow)
	require.NoError(t, err)
	kept.Observe(0, 7)
	before := live.State()
	require.ErrorContains(t, live.Restore(state), `state of "dy" is of E5M2`)
	require.Equal(t, before, live.State())

	_, err = scaling.Merge(state, before)
	require.ErrorContains(t, err, `worker 1: scaling: history of "dy" is of E4M3 in 1x1 blocks of tensor, the other is of E5M2 in 1x1 blocks of tensor`)

	state.Histories["dy"] = scaling.HistoryState{Format: 99}
	require.ErrorContains(t, state.Check(), `history of "dy": unknown format Format(99)`)
}

func TestEpsilonOnlyWhereThereIsOne(t *testing.T) {
	for _, p := range scaling.Profiles() {
		r := p.Recipe(scaling.Input)
		r.Epsilon = 1e-6
		switch p {
		case scaling.TECurrent, scaling.TECurrentPow2, scaling.TEBlock, scaling.TEBlockPow2:
			require.NoError(t, r.Check(), p)
		default:
			require.ErrorContains(t, r.Check(), "this arithmetic has none", p)
		}
	}
}
