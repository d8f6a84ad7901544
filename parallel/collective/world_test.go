package collective

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/telemetry"
)

// exchanges are many ways to add.
func exchanges(t *testing.T) (list []Exchange) {
	for _, name := range []string{"fp32", "e4m3-block", "nvfp4"} {
		for _, order := range allOrders {
			for _, rounding := range allRoundings {
				w := wire(t, name)
				list = append(list, Exchange{Name: "x", Cols: 20, Wire: w, Result: w, Order: order, Rounding: rounding})
			}
		}
	}
	for _, rule := range []AmaxRule{AmaxShared, AmaxLate} {
		list = append(list, Exchange{Name: "x", Wire: wire(t, "e4m3-block"), Order: OrderRing, Amax: rule})
	}
	return list
}

// TestWorldIsPure runs ranks and compares all that they have, and have sent, with the
// functions that have no ranks.
func TestWorldIsPure(t *testing.T) {
	for _, ranks := range []int{1, 3, 8} {
		operands := operandsOf(uint64(ranks), ranks, 140)
		for _, x := range exchanges(t) {
			what := fmt.Sprintf("%d ranks, %v, %v, %v, %v", ranks, x.Wire, x.Order, x.Rounding, x.Amax)
			pure := x
			if x.Amax == AmaxLate {
				pure.Memory = new(AmaxMemory)
			}
			var sums, parts [][]float32
			volume := newTraffic(ranks)
			for step := range 2 {
				scaled := operands
				if step == 1 {
					scaled = operandsOf(77, ranks, 140)
				}
				sum, traffic, err := pure.AllReduce(t.Context(), scaled)
				require.NoError(t, err)
				volume.Add(traffic)
				all, traffic, err := pure.ReduceScatter(t.Context(), scaled)
				require.NoError(t, err)
				volume.Add(traffic)
				sums, parts = append(sums, sum), append(parts, all)
			}
			traffic, err := Run(t.Context(), ranks, func(r *Rank) error {
				x := x
				if x.Amax == AmaxLate {
					x.Memory = new(AmaxMemory)
				}
				for step := range 2 {
					mine := operands[r.ID()]
					if step == 1 {
						mine = operandsOf(77, ranks, 140)[r.ID()]
					}
					sum := make([]float32, 140)
					if err := r.AllReduce(x, sum, mine); err != nil {
						return err
					}
					part, err := r.ReduceScatter(x, mine)
					if err != nil {
						return err
					}
					lo, hi := x.cut(140, r.ID(), ranks)
					if !slices.Equal(bitsOf(sums[step]), bitsOf(sum)) || !slices.Equal(bitsOf(parts[step][lo:hi]), bitsOf(part)) {
						return errors.New("other bits")
					}
				}
				return nil
			})
			require.NoError(t, err, what)
			require.Equal(t, volume, traffic, what)
		}
	}
}

// TestGathers is the same of collectives that do not add.
func TestGathers(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 6, 8} {
		var operands [][]float32
		var sizes []int
		toAll := make([][][]float32, ranks)
		for r := range ranks {
			sizes = append(sizes, (r+1)%3*16) // some are empty
			operands = append(operands, randoms(uint64(r), sizes[r]))
			for j := range ranks {
				toAll[r] = append(toAll[r], randoms(uint64(100*r+j), (r+j)%4*8))
			}
		}
		for _, name := range []string{"fp32", "e4m3-token", "mxfp4"} {
			for _, order := range allOrders {
				x := Exchange{Name: "x", Cols: 8, Wire: wire(t, name), Order: order}
				what := fmt.Sprintf("%d ranks, %s, %v", ranks, name, order)
				all, volume, err := x.AllGather(t.Context(), operands)
				require.NoError(t, err)
				alone, only := make([][]float32, ranks), make([]int, ranks) // a broadcast
				alone[ranks/2], only[ranks/2] = randoms(9, 24), 24
				one, traffic, err := x.AllGather(t.Context(), alone)
				require.NoError(t, err)
				volume.Add(traffic)
				results, traffic, err := x.AllToAll(t.Context(), toAll)
				require.NoError(t, err)
				volume.Add(traffic)
				if name == "fp32" {
					requireSame(t, slices.Concat(operands...), all)
					requireSame(t, randoms(9, 24), one)
				}
				traffic, err = Run(t.Context(), ranks, func(r *Rank) error {
					dst := make([]float32, len(all))
					if err := r.AllGather(x, dst, sizes, operands[r.ID()]); err != nil {
						return err
					}
					values := make([]float32, 24)
					if err := r.AllGather(x, values, only, alone[r.ID()]); err != nil {
						return err
					}
					from := make([][]float32, ranks)
					for i := range from {
						from[i] = make([]float32, len(toAll[i][r.ID()]))
					}
					if err := r.AllToAll(x, from, toAll[r.ID()]); err != nil {
						return err
					}
					for i := range from {
						if !slices.Equal(bitsOf(from[i]), bitsOf(results[r.ID()][i])) {
							return fmt.Errorf("other bits of rank %d", i)
						}
						if name == "fp32" && !slices.Equal(from[i], toAll[i][r.ID()]) {
							return fmt.Errorf("not what rank %d sent", i)
						}
					}
					if !slices.Equal(bitsOf(dst), bitsOf(all)) || !slices.Equal(bitsOf(values), bitsOf(one)) {
						return errors.New("other bits")
					}
					return nil
				})
				require.NoError(t, err, what)
				require.Equal(t, volume, traffic, what)
			}
		}
	}
}

// TestGroups has rows and columns of a grid of ranks add by themselves.
func TestGroups(t *testing.T) {
	_, err := Run(t.Context(), 6, func(r *Rank) error {
		row, col := r.ID()/3, r.ID()%3
		inRow, err := r.Group(3*row, 3*row+1, 3*row+2)
		if err != nil {
			return err
		}
		inCol, err := r.Group(col, col+3)
		if err != nil {
			return err
		}
		value := []float32{float32(r.ID())}
		sum := []float32{0}
		if err := inRow.AllReduce(Exchange{Order: OrderTree}, sum, value); err != nil {
			return err
		}
		if want := float32(9*row + 3); sum[0] != want {
			return fmt.Errorf("row: %v, want %v", sum[0], want)
		}
		if err := inCol.AllReduce(Exchange{Order: OrderRing}, sum, value); err != nil {
			return err
		}
		if want := float32(2*col + 3); sum[0] != want || inCol.ID() != row || inCol.Ranks() != 2 {
			return fmt.Errorf("column: %v, want %v", sum[0], want)
		}
		if _, err := r.Group((r.ID() + 1) % 6); !errors.Is(err, ErrInput) {
			return fmt.Errorf("a group without the rank: %v", err)
		}
		return nil
	})
	require.NoError(t, err)
}

// TestFailure: one rank's error ends the others, wherever they wait, and is named.
func TestFailure(t *testing.T) {
	broken := errors.New("broken")
	for _, order := range allOrders {
		_, err := Run(t.Context(), 7, func(r *Rank) error {
			if r.ID() == 4 {
				return broken
			}
			values := make([]float32, 100)
			for {
				if err := r.AllReduce(Exchange{Order: order}, values, values); err != nil {
					return err
				}
			}
		})
		require.ErrorIs(t, err, broken, order)
		require.EqualError(t, err, "rank 4: broken")
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, 3, func(r *Rank) error {
		cancel()
		_, err := r.Take((r.ID()+1)%3, Subject{})
		return err
	})
	require.ErrorIs(t, err, context.Canceled)
}

// TestMismatch: ranks that do not do the same hear of it.
func TestMismatch(t *testing.T) {
	values := func() []float32 { return make([]float32, 12) }
	for what, f := range map[string]func(r *Rank) error{
		"which has returned": func(r *Rank) error {
			if r.ID() == 1 {
				return nil
			}
			return r.AllReduce(Exchange{}, values(), values())
		},
		`rank 1, which is in sum of "b"`: func(r *Rank) error {
			return r.AllReduce(Exchange{Name: string(rune('a' + r.ID()))}, values(), values())
		},
		"12 elements is expected of rank 1, which is in sum": func(r *Rank) error {
			return r.AllReduce(Exchange{Name: "x"}, make([]float32, 12+r.ID()), make([]float32, 12+r.ID()))
		},
	} {
		_, err := Run(t.Context(), 2, f)
		require.ErrorIs(t, err, ErrMismatch)
		require.ErrorContains(t, err, what)
		require.ErrorContains(t, err, "rank 0: ")
	}
}

// TestReports: what is lost is counted, the same with ranks and without.
func TestReports(t *testing.T) {
	operands := [][]float32{{1, 3e38, 1e-30, 0}, {2, 3e38, 1, 0}, {3, 1, 1, 0}}
	record := func(x Exchange, f func(x Exchange)) map[string]telemetry.Total {
		rec := telemetry.New()
		x.Reporter = rec
		f(x)
		totals := map[string]telemetry.Total{}
		for _, total := range rec.Totals() {
			require.Equal(t, "g", total.Tensor)
			totals[total.Op] = total
		}
		return totals
	}
	for _, x := range []Exchange{
		{Name: "g"}, {Name: "g", Wire: wire(t, "bf16"), Order: OrderRing}, {Name: "g", Wire: wire(t, "e4m3-tensor"), Rounding: RoundStored, Result: wire(t, "e4m3-tensor")},
	} {
		pure := record(x, func(x Exchange) {
			_, _, err := x.AllReduce(t.Context(), operands)
			require.NoError(t, err)
		})
		world := record(x, func(x Exchange) {
			_, err := Run(t.Context(), 3, func(r *Rank) error { return r.AllReduce(x, make([]float32, 4), operands[r.ID()]) })
			require.NoError(t, err)
		})
		require.Equal(t, pure, world)
		switch x.Wire.kind {
		case kindFP32:
			require.Equal(t, int64(1), pure["sum"].Stats.SaturatedPos) // 6e38
			require.Equal(t, int64(8), pure["sum"].Stats.Elements)
			require.Equal(t, int64(1), pure["sum"].Stats.PosInf) // plus 1
			require.NotContains(t, pure, "send")
		case kindBF16:
			require.Equal(t, int64(8), pure["send"].Stats.Elements) // 2 hops of 4 elements
			require.NotContains(t, pure, "result")                  // FP32
		case kindCoded:
			require.Equal(t, int64(3), pure["send"].Blocks-2) // 3 operands and 2 partial sums
			require.Positive(t, pure["send"].Stats.Flushed)   // 1 beside 3e38
		}
	}
}

// TestManyRanks exchanges among more ranks than there are processors, all at once.
func TestManyRanks(t *testing.T) {
	const ranks = 40
	operands := operandsOf(8, ranks, 64)
	want, _, err := Exchange{Order: OrderHalving}.AllReduce(t.Context(), operands)
	require.NoError(t, err)
	var once sync.Once
	_, err = Run(t.Context(), ranks, func(r *Rank) error {
		got := make([]float32, 64)
		for range 3 {
			if err := r.AllReduce(Exchange{Order: OrderHalving}, got, operands[r.ID()]); err != nil {
				return err
			}
		}
		once.Do(func() { requireSame(t, want, got) })
		return nil
	})
	require.NoError(t, err)
}
