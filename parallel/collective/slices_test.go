package collective

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

func quantized(t *testing.T, values []float32, rows, cols int, r scaling.Recipe) *tensor.Tensor {
	t.Helper()
	q := tensor.Tensor{Shape: []int{rows, cols}}
	require.NoError(t, scaling.Quantize(t.Context(), &q, values, scaling.Quantizer{Recipe: r}))
	return &q
}

// TestMultiplySlices multiplies in 8 and in 6 slices on all numbers of ranks, whose
// operands are their own, and compares with products of slices that a plain tree adds.
func TestMultiplySlices(t *testing.T) {
	const m, n = 3, 5
	for _, test := range []struct {
		k, count, align int
		wire            string
	}{{1024, 8, 128, "e4m3-block"}, {1000, 8, 32, "mxfp8"}, {300, 8, 128, "e4m3-block"}, {777, 6, 1, "e4m3-token"}, {250, 6, 16, "nvfp4"}} {
		recipe := wire(t, test.wire).Recipe
		a, b := randoms(1, m*test.k), randoms(2, n*test.k)
		s := Slices{Exchange: Exchange{Name: "c", Order: OrderTree}, Count: test.count, Align: test.align}
		wholeA, wholeB := quantized(t, a, m, test.k, recipe), quantized(t, b, n, test.k, recipe)

		var terms [][]float32
		end := 0
		for i := range test.count {
			lo, hi := s.Range(test.k, i)
			require.Equal(t, end, lo)
			end = hi
			term := make([]float32, m*n)
			if lo < hi {
				sa, sb := tensor.Tensor{}, tensor.Tensor{}
				for _, cut := range []struct{ to, from *tensor.Tensor }{{&sa, wholeA}, {&sb, wholeB}} {
					rows, _ := cut.from.Dims()
					*cut.to = tensor.Tensor{Format: recipe.Format, Shape: []int{rows, hi - lo}, Block: recipe.Block, ScaleFormat: cut.from.ScaleFormat, Outer: cut.from.Outer}
					for row := range rows {
						cut.to.Codes = append(cut.to.Codes, cut.from.Row(row)[lo:hi]...)
						for c := lo; c < hi; c += max(recipe.Block.Cols, 1) {
							cut.to.Scales = append(cut.to.Scales, cut.from.Scale(row, c))
							if recipe.Block.Cols == 0 {
								break
							}
						}
					}
				}
				require.NoError(t, gemm.Multiply(t.Context(), term, &sa, &sb, gemm.Options{}))
			}
			terms = append(terms, term)
		}
		require.Equal(t, test.k, end)
		want := make([]float32, m*n)
		for i := range want {
			at := func(s int) float32 { return terms[s][i] }
			switch test.count {
			case 8:
				want[i] = ((at(0) + at(1)) + (at(2) + at(3))) + ((at(4) + at(5)) + (at(6) + at(7)))
			case 6:
				want[i] = ((at(0) + at(1)) + (at(2) + at(3))) + (at(4) + at(5))
			}
		}
		c := make([]float32, m*n)
		_, err := Run(t.Context(), 1, func(r *Rank) error { return r.Multiply(s, c, wholeA, wholeB, test.k, 1) })
		require.NoError(t, err)
		requireSame(t, want, c)

		different := 0
		for ranks := 1; ranks <= test.count; ranks++ {
			own := func(t *tensor.Tensor, s Slices, rank int) (*tensor.Tensor, error) {
				lo, hi := s.Columns(test.k, rank, ranks)
				return columns(t, lo, hi)
			}
			multiply := func(s Slices) (c []float32) {
				all := make([][]float32, ranks)
				_, err := Run(t.Context(), ranks, func(r *Rank) error {
					a, errA := own(wholeA, s, r.ID())
					b, errB := own(wholeB, s, r.ID())
					all[r.ID()] = make([]float32, m*n)
					return errors.Join(errA, errB, r.Multiply(s, all[r.ID()], a, b, test.k, 1))
				})
				require.NoError(t, err)
				for _, c := range all {
					requireSame(t, all[0], c)
				}
				return all[0]
			}
			requireSame(t, want, multiply(s), "%s, %d ranks", test.wire, ranks)
			byRank := s
			byRank.Count = ranks
			if !slices.Equal(want, multiply(byRank)) {
				different++
			}
		}
		require.Positive(t, different) // where slices are as many as ranks
	}
}

// TestAllReduceSlices: whatever is sent, in whichever order, the result is that of as many
// ranks as there are slices, and less is sent.
func TestAllReduceSlices(t *testing.T) {
	const count, n = 6, 40
	terms := operandsOf(11, count, n)
	for _, x := range exchanges(t) {
		if x.Amax == AmaxLate {
			continue
		}
		want, most, err := x.AllReduce(t.Context(), terms)
		require.NoError(t, err)
		s := Slices{Exchange: x, Count: count}
		for _, ranks := range []int{1, 2, 4, 6} {
			what := fmt.Sprintf("%v %v %v, %d ranks", x.Wire, x.Order, x.Rounding, ranks)
			traffic, err := Run(t.Context(), ranks, func(r *Rank) error {
				dst := make([]float32, n)
				lo, hi := s.Of(r.ID(), ranks)
				if err := r.AllReduceSlices(s, dst, terms[lo:hi]); err != nil {
					return err
				}
				if !slices.Equal(bitsOf(want), bitsOf(dst)) {
					return errors.New("other bits")
				}
				return nil
			})
			require.NoError(t, err, what)
			switch ranks {
			case 1:
				require.Zero(t, traffic.Bytes(), what)
			case count:
				require.Equal(t, most, traffic, what)
			default:
				require.Less(t, traffic.Bytes(), most.Bytes(), what)
			}
		}
	}
}
