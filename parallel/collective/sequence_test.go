package collective

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScatterAndGather: rows of a sum over slices that are scattered, and gathered again, are
// those of an all-reduce, in every order.
func TestScatterAndGather(t *testing.T) {
	const rows, cols, slices = 7, 3, 4
	terms := operandsOf(1, slices, rows*cols)
	for _, order := range allOrders {
		s := Slices{Exchange: Exchange{Order: order, Cols: cols}, Count: slices}
		coded := s
		coded.Wire = wire(t, "e4m3-tensor")
		var one []float32
		for _, ranks := range []int{1, 2, 3, 4} {
			_, err := Run(t.Context(), ranks, func(r *Rank) error {
				lo, hi := s.Of(r.ID(), ranks)
				first, end := s.Tokens(rows, r.ID(), ranks)
				sum, own, whole := make([]float32, rows*cols), make([]float32, (end-first)*cols), make([]float32, rows*cols)
				inCodes := make([]float32, rows*cols)
				err := errors.Join(
					r.AllReduceSlices(s, sum, terms[lo:hi]), r.ReduceScatterSlices(s, own, terms[lo:hi]),
					r.AllGatherSlices(s, whole, own), r.AllGatherSlices(coded, inCodes, own),
				)
				require.Equal(t, whole[first*cols:end*cols], own, "%v, %d ranks", order, ranks)
				if order == OrderRank || order == OrderTree || order == OrderScatter { // the same in each part
					require.Equal(t, sum, whole, "%v, %d ranks", order, ranks)
				}
				if r.ID() == 0 {
					all := append(whole, inCodes...)
					if ranks == 1 {
						one = all
					}
					require.Equal(t, one, all, "%v, %d ranks", order, ranks)
				}
				return err
			})
			require.NoError(t, err)
		}
	}
}
