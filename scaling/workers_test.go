package scaling_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestAmaxesOfNoBlocks checks that a peer's history without blocks is refused and
// changes nothing.
func TestAmaxesOfNoBlocks(t *testing.T) {
	recipe := delayed(2)
	recipe.Block = tensor.Block{Rows: 1}
	var hs scaling.Histories
	for _, name := range []string{"a", "w"} {
		h, err := hs.Get(name, recipe)
		require.NoError(t, err)
		x := &tensor.Tensor{Shape: []int{2, 1}}
		require.NoError(t, scaling.Quantize(t.Context(), x, []float32{1, 2}, scaling.Quantizer{Recipe: recipe, History: h}))
	}
	before := hs.State()
	peer := scaling.Amaxes{Version: 1, Histories: map[string]scaling.HistoryAmaxes{
		"a": {Block: recipe.Block, Grid: [2]int{2, 1}, Amax: []scaling.Float{9, 9}},
		"w": {Block: recipe.Block},
	}}
	require.EqualError(t, hs.SetAmaxes(peer), `scaling: amaxes of "w": there are no blocks`)
	require.ErrorIs(t, hs.SetAmaxes(peer), scaling.ErrState)
	require.Equal(t, before, hs.State())
	for _, all := range [][]scaling.Amaxes{{hs.Amaxes(), peer}, {peer, hs.Amaxes()}} {
		_, err := scaling.MergeAmaxes(all...)
		require.ErrorIs(t, err, scaling.ErrState)
	}
}

// TestAmaxesOfOneStep runs a worker beside one that never uses the tensor: what it
// observed in one step is sent in that step only, and its scale recovers from it.
func TestAmaxesOfOneStep(t *testing.T) {
	var user, other scaling.Histories
	h := history(t, &user, "w", 2)
	for step, amax := range []float32{100, 1, 1, 1} {
		h.Observe(0, amax)
		all := mergeAmaxes(t, user.Amaxes(), other.Amaxes())
		require.Equal(t, scaling.Float(amax), all.Histories["w"].Amax[0], "step %d", step)
		for _, hs := range []*scaling.Histories{&user, &other} {
			require.NoError(t, hs.SetAmaxes(all))
			require.Equal(t, scaling.Float(amax), hs.State().Histories["w"].Blocks[0].Current)
			hs.Update()
			require.Zero(t, hs.State().Histories["w"].Blocks[0].Current)
			require.Empty(t, hs.Amaxes().Histories)
		}
	}
	require.Equal(t, float32(448), h.Scale(0).Multiplier)
}

// TestTooManyAmaxes checks that no way into a history gets around the limit of its
// size.
func TestTooManyAmaxes(t *testing.T) {
	recipe := delayed(1 << 20)
	recipe.Block = tensor.Block{Rows: 1}
	const rows = 300
	saved := scaling.HistoryState{Block: recipe.Block, Grid: [2]int{rows, 1}, Blocks: make([]scaling.BlockState, rows)}
	for i := range saved.Blocks {
		saved.Blocks[i] = scaling.BlockState{Scale: 1, Past: []scaling.Float{}}
	}
	s := scaling.State{Version: 2, Histories: map[string]scaling.HistoryState{"w": saved}}
	amaxes := scaling.Amaxes{Version: 1, Histories: map[string]scaling.HistoryAmaxes{
		"w": {Block: recipe.Block, Grid: saved.Grid, Amax: make([]scaling.Float, rows)}}}

	const tooMany = `tensor "w": scaling: 300x1 blocks of row are too many for histories of 1048576 steps: want at most 268435456 amaxes`
	var waiting scaling.Histories
	require.NoError(t, waiting.Restore(s))
	_, err := waiting.Get("w", recipe)
	require.EqualError(t, err, tooMany)
	require.ErrorIs(t, err, scaling.ErrHistory)

	var live scaling.Histories
	h, err := live.Get("w", recipe)
	require.NoError(t, err)
	require.EqualError(t, live.Restore(s), tooMany)
	require.EqualError(t, live.SetAmaxes(amaxes), tooMany)
	rowsNow, _ := h.Grid()
	require.Zero(t, rowsNow)

	saved.Grid[0], saved.Blocks = 1, saved.Blocks[:1]
	s.Histories["w"] = saved
	require.NoError(t, live.Restore(s))
}

// TestRefusedGrid checks that a call which is refused does not tell the history its
// grid.
func TestRefusedGrid(t *testing.T) {
	recipe := delayed(2)
	recipe.Block = tensor.Block{Rows: 1}
	h, err := scaling.NewHistory(recipe)
	require.NoError(t, err)
	unknown := func() {
		t.Helper()
		rows, cols := h.Grid()
		require.Zero(t, rows+cols)
	}
	src := make([]float32, 6)
	q := scaling.Quantizer{Recipe: recipe, History: h}
	q.Workers = -1
	require.ErrorContains(t, q.Check(), "-1 workers")
	require.ErrorContains(t, scaling.Quantize(t.Context(), tensorOf(3, 2), src, q), "-1 workers")
	unknown()
	q.Workers = 0
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, scaling.Quantize(ctx, tensorOf(3, 2), src, q), context.Canceled)
	unknown()
	require.NoError(t, scaling.Quantize(t.Context(), tensorOf(3, 2), src, q))
	rows, _ := h.Grid()
	require.Equal(t, 3, rows)
}
