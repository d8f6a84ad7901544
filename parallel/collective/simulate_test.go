package collective

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/random"
)

// TestExactSum compares with sums of rational numbers.
func TestExactSum(t *testing.T) {
	edges := []float32{0, 0x1p-149, -0x1p-149, 0x1p-126, math.MaxFloat32, -math.MaxFloat32, 1, -1, 0x1.fffffep-3, 0x1p31, 0x1p32}
	for trial := range uint64(200) {
		var sum exactSum
		want := new(big.Rat)
		for i := range trial%40 + 1 {
			h := random.Hash(3, trial, i)
			x := math.Float32frombits(uint32(h))
			if h>>40%3 == 0 || isNonFinite(x) {
				x = edges[h>>48%uint64(len(edges))]
			}
			sum.add(x)
			want.Add(want, new(big.Rat).SetFloat64(float64(x)))
		}
		f, _ := want.Float64()
		require.Equal(t, f, sum.float64(), "%d", trial)
	}
	var sum exactSum
	sum.add(float32(math.Inf(1)))
	require.True(t, math.IsNaN(sum.float64()))
}

// TestSimulation compares with the part of a reduction that ends at rank 0, and the error
// with sums in big numbers.
func TestSimulation(t *testing.T) {
	const n = 6
	for _, x := range exchanges(t) {
		if x.Amax == AmaxLate {
			continue
		}
		x.Cols = 0
		for _, ranks := range []int{2, 7, 16} {
			operand := func(dst []float32, r int) { copy(dst, randoms(uint64(r), n)) }
			s := Simulation{Exchange: x, Ranks: ranks, Elements: n, Operand: operand}
			sum, e, err := s.Run(t.Context())
			require.NoError(t, err)

			var operands [][]float32
			for r := range ranks {
				o := make([]float32, n*ranks) // part 0 is the operand
				operand(o[:n], r)
				operands = append(operands, o)
			}
			parts, _, err := x.ReduceScatter(t.Context(), operands)
			require.NoError(t, err)
			requireSame(t, parts[:n], sum, "%v %v %v %d", x.Wire, x.Order, x.Rounding, ranks)

			var squares, errors float64
			for i, v := range sum {
				want := new(big.Float).SetPrec(500)
				for r := range operands {
					want.Add(want, big.NewFloat(float64(operands[r][i])))
				}
				w, _ := want.Float64()
				squares += w * w
				errors += (float64(v) - w) * (float64(v) - w)
			}
			require.InEpsilon(t, math.Sqrt(errors/squares)+1e-9, e.RMS+1e-9, 1e-6)
		}
	}
}

// TestManyRanksSimulated sums over 16,384 ranks without having all of their operands:
// the error of a chain of BF16 sums grows with the ranks, and that of a tree hardly.
func TestManyRanksSimulated(t *testing.T) {
	const n = 256
	ranks := 16384
	if testing.Short() {
		ranks = 2048
	}
	errors := map[Order]SumError{}
	for _, order := range []Order{OrderRing, OrderTree} {
		s := Simulation{
			Exchange: Exchange{Order: order, Wire: Wire{kind: kindBF16}, Rounding: RoundStored}, Ranks: ranks, Elements: n,
			Operand: func(dst []float32, r int) {
				for i := range dst {
					dst[i] = 1 + float32(random.Hash(1, uint64(r), uint64(i))>>40)*0x1p-24
				}
			},
		}
		_, e, err := s.Run(t.Context())
		require.NoError(t, err)
		errors[order] = e
	}
	require.Less(t, errors[OrderTree].RMS, 0.01)
	require.Less(t, errors[OrderRing].Bias, -0.5) // 1 is less than half a step of 256
	require.InDelta(t, -errors[OrderRing].Bias, errors[OrderRing].RMS, 1e-2)
	require.Less(t, errors[OrderRing].Max, 1.0)
}

func TestSimulationRefusals(t *testing.T) {
	s := Simulation{Ranks: 2, Elements: 0, Operand: func([]float32, int) {}}
	_, _, err := s.Run(t.Context())
	require.ErrorIs(t, err, ErrInput)
	s = Simulation{Ranks: 0, Elements: 1, Operand: func([]float32, int) {}}
	_, _, err = s.Run(t.Context())
	require.ErrorIs(t, err, ErrInput)
}
