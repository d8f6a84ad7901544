package scaling_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// cutOut is a block of a matrix as a matrix of its own.
func cutOut[T any](src []T, rows, cols int, b tensor.Block, row, col int) (part []T, height, width int) {
	blockRows, blockCols := b.Extents(rows, cols)
	i1, j1 := min((row+1)*blockRows, rows), min((col+1)*blockCols, cols)
	for i := row * blockRows; i < i1; i++ {
		part = append(part, src[i*cols+col*blockCols:i*cols+j1]...)
	}
	return part, i1 - row*blockRows, j1 - col*blockCols
}

// TestBlockHistories runs steps of a matrix whose blocks each have a history, and
// of each block alone as a tensor with one: codes, scales, states and later scales
// are the same, also across saving, restoring and merging.
func TestBlockHistories(t *testing.T) {
	const rows, cols = 7, 10
	r := rand.New(rand.NewPCG(11, 11))
	for _, b := range []tensor.Block{{Rows: 1}, {Cols: 1}, {Rows: 1, Cols: 4}, {Rows: 3, Cols: 4}, {Rows: 100, Cols: 4}, {Rows: 100, Cols: 100}} {
		for _, d := range []scaling.Delayed{{Length: 1}, {Length: 3}, {Length: 4, Margin: 2}, {Length: 3, Algorithm: scaling.AmaxMostRecent, Margin: -1}} {
			recipe := scaling.Recipe{Profile: scaling.TEDelayed, Format: fp8.E5M2, Block: b, Delayed: d}
			alone := recipe
			alone.Block = tensor.Block{}
			gridRows, gridCols := b.Grid(rows, cols)

			var whole scaling.Histories
			parts := make([]scaling.Histories, gridRows*gridCols)
			for step := range 12 {
				src := make([]float32, rows*cols)
				for i := range src {
					src[i] = float32(r.NormFloat64()) * anyAmax(r)
				}
				if r.IntN(3) == 0 { // a block that is not used
					clear(src[:2*cols])
				}
				h, err := whole.Get("w", recipe)
				require.NoError(t, err)
				x := &tensor.Tensor{Name: "w", Shape: []int{rows, cols}}
				require.NoError(t, scaling.Quantize(t.Context(), x, src, scaling.Quantizer{Recipe: recipe, History: h}))
				states := whole.State().Histories["w"]
				require.Equal(t, [2]int{gridRows, gridCols}, states.Grid)

				for i := range parts {
					values, height, width := cutOut(src, rows, cols, b, i/gridCols, i%gridCols)
					codes, _, _ := cutOut(x.Codes, rows, cols, b, i/gridCols, i%gridCols)
					one, err := parts[i].Get("w", alone)
					require.NoError(t, err)
					y := &tensor.Tensor{Name: "w", Shape: []int{height, width}}
					require.NoError(t, scaling.Quantize(t.Context(), y, values, scaling.Quantizer{Recipe: alone, History: one}))
					require.Equal(t, y.Codes, codes, "block %v, %+v, step %d", b, d, step)
					require.Equal(t, y.Scales[0], x.Scales[i])
					require.Equal(t, one.Scale(0), h.Scale(i))
					require.Equal(t, parts[i].State().Histories["w"].Blocks[0], states.Blocks[i])
					parts[i].Update()
				}
				if step%3 == 2 { // go on from a saved state
					saved, err := scaling.Merge(whole.State(), whole.State())
					require.NoError(t, err)
					require.Equal(t, bitwise(whole.State()), bitwise(saved))
					whole = scaling.Histories{}
					require.NoError(t, whole.Restore(saved))
					_, err = whole.Get("w", recipe)
					require.NoError(t, err)
				}
				whole.Update()
			}
		}
	}
}

// TestVaryingGrid checks that a history of blocks is for one grid.
func TestVaryingGrid(t *testing.T) {
	recipe := scaling.Recipe{Profile: scaling.TEDelayed, Block: tensor.Block{Rows: 1, Cols: 2}, Delayed: scaling.Delayed{Length: 2}}
	h, err := scaling.NewHistory(recipe)
	require.NoError(t, err)
	rows, cols := h.Grid()
	require.Zero(t, rows+cols)
	require.PanicsWithValue(t, "scaling: the history has no such block", func() { h.Scale(0) })
	q := scaling.Quantizer{Recipe: recipe, History: h}
	quantize := func(rows, cols int) error {
		x := &tensor.Tensor{Name: "tokens", Shape: []int{rows, cols}}
		before := *x
		err := scaling.Quantize(t.Context(), x, make([]float32, rows*cols), q)
		if err != nil {
			require.Equal(t, before, *x)
		}
		return err
	}
	require.NoError(t, quantize(0, 5), "an empty tensor has no blocks")
	require.NoError(t, quantize(3, 5))
	rows, cols = h.Grid()
	require.Equal(t, [2]int{3, 3}, [2]int{rows, cols})
	require.NoError(t, quantize(3, 6))
	require.NoError(t, quantize(0, 6))
	err = quantize(4, 5)
	require.ErrorIs(t, err, scaling.ErrHistory)
	require.EqualError(t, err, `tensor "tokens": scaling: 4x3 blocks of 1x2 cannot use a history of 3x3: delayed scales need a grid that does not vary from step to step`)

	other := recipe
	other.Block = tensor.Block{Rows: 1}
	x := &tensor.Tensor{Name: "tokens", Shape: []int{3, 5}}
	err = scaling.Quantize(t.Context(), x, make([]float32, 15), scaling.Quantizer{Recipe: other, History: h})
	require.ErrorIs(t, err, scaling.ErrHistory)

	huge, err := scaling.NewHistory(scaling.Recipe{Profile: scaling.TEDelayed, Block: tensor.Block{Rows: 1, Cols: 1}, Delayed: scaling.Delayed{Length: 1 << 20}})
	require.NoError(t, err)
	q = scaling.Quantizer{Recipe: scaling.Recipe{Profile: scaling.TEDelayed, Block: tensor.Block{Rows: 1, Cols: 1}, Delayed: scaling.Delayed{Length: 1 << 20}}, History: huge}
	require.ErrorContains(t, quantize(100, 100), "too many")
}

// TestMergeGrids checks that workers' histories must be of the same blocks, and that
// one which knows none yet does not count.
func TestMergeGrids(t *testing.T) {
	recipe := scaling.Recipe{Profile: scaling.TEDelayed, Block: tensor.Block{Rows: 1}, Delayed: scaling.Delayed{Length: 2}}
	worker := func(rows int) scaling.State {
		var hs scaling.Histories
		h, err := hs.Get("w", recipe)
		require.NoError(t, err)
		if rows > 0 {
			x := &tensor.Tensor{Shape: []int{rows, 2}}
			require.NoError(t, scaling.Quantize(t.Context(), x, []float32{1, 2, 3, 4, 5, 6}[:2*rows], scaling.Quantizer{Recipe: recipe, History: h}))
		}
		return hs.State()
	}
	require.Equal(t, bitwise(worker(2)), bitwise(merge(t, worker(0), worker(2), worker(0))))
	require.Equal(t, bitwise(worker(0)), bitwise(merge(t, worker(0), worker(0))))
	_, err := scaling.Merge(worker(0), worker(2), worker(3))
	require.ErrorIs(t, err, scaling.ErrHistory)
	require.EqualError(t, err, `worker 2: scaling: history of "w" is of E4M3 in 3x1 blocks of row, the other is of E4M3 in 2x1 blocks of row`)

	// A restored grid is the history's.
	var hs scaling.Histories
	h, err := hs.Get("w", recipe)
	require.NoError(t, err)
	require.NoError(t, hs.Restore(worker(3)))
	rows, _ := h.Grid()
	require.Equal(t, 3, rows)
	require.NoError(t, hs.Restore(scaling.State{Version: 2}))
	rows, _ = h.Grid()
	require.Zero(t, rows)

	for want, change := range map[string]func(h *scaling.HistoryState){
		`scaling: history of "w": a grid of 2x1 has 1 blocks`:                                     func(h *scaling.HistoryState) { h.Blocks = h.Blocks[:1] },
		`scaling: history of "w": a grid of 0x1 blocks of row`:                                    func(h *scaling.HistoryState) { h.Grid[0] = 0 },
		`scaling: history of "w": a grid of 2x1 blocks of tensor`:                                 func(h *scaling.HistoryState) { h.Block = tensor.Block{} },
		`scaling: history of "w": a grid of 1073741824x4 has 2 blocks`:                            func(h *scaling.HistoryState) { h.Grid = [2]int{1 << 30, 4} },
		`scaling: history of "w": block -1x0 has a negative extent`:                               func(h *scaling.HistoryState) { h.Block.Rows = -1 },
		`scaling: state of "w": block (1, 0): scale 0: want a finite number above 0`:              func(h *scaling.HistoryState) { h.Blocks[1].Scale = 0 },
		`scaling: state of "w": block (1, 0): amax of 1 steps ago is -1: want no negative number`: func(h *scaling.HistoryState) { h.Blocks[1].Past[0] = -1 },
	} {
		s := worker(2)
		h := s.Histories["w"]
		change(&h)
		s.Histories["w"] = h
		require.EqualError(t, s.Check(), want)
		require.ErrorIs(t, s.Check(), scaling.ErrState)
	}
}
