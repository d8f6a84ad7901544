package collective

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

var (
	allOrders    = []Order{OrderRank, OrderScatter, OrderRing, OrderTree, OrderHalving}
	allRoundings = []Rounding{RoundSent, RoundStored, RoundOnce}
)

// plainSum is the definition of a sum of one number of each rank, in BF16 where it is
// rounded: part is that which the number is in.
func plainSum(o Order, rounding Rounding, x []float32, part int) float32 {
	ranks := len(x)
	same := func(v float32) float32 { return v }
	operand, sent, stored, result := same, toBF16, same, toBF16
	switch rounding {
	case RoundStored:
		operand, stored = toBF16, toBF16
	case RoundOnce:
		operand, sent = toBF16, same
	}
	leaf := func(r int) float32 { return operand(x[r]) }
	var sum float32
	switch o {
	case OrderRank:
		sum = leaf(0)
		for r := 1; r < ranks; r++ {
			sum = stored(sum + sent(leaf(r)))
		}
	case OrderScatter:
		at := func(r int) float32 {
			if r == part {
				return leaf(r)
			}
			return sent(leaf(r))
		}
		sum = at(0)
		for r := 1; r < ranks; r++ {
			sum = stored(sum + at(r))
		}
	case OrderRing:
		sum = leaf((part + 1) % ranks)
		for k := 2; k <= ranks; k++ {
			sum = stored(sent(sum) + leaf((part+k)%ranks))
		}
	case OrderTree:
		var of func(first, size int) float32
		of = func(first, size int) float32 {
			switch {
			case size == 1:
				return leaf(first)
			case first+size/2 >= ranks:
				return of(first, size/2)
			}
			return stored(of(first, size/2) + sent(of(first+size/2, size/2)))
		}
		sum = of(0, 1024)
	case OrderHalving:
		p := 1
		for ; 2*p <= ranks; p *= 2 {
		}
		var of func(r, d int) float32
		of = func(r, d int) float32 { // what rank r has after the exchange at distance d
			switch {
			case d == p && r+p >= ranks:
				return leaf(r)
			case d == p:
				return stored(leaf(r) + sent(leaf(r+p)))
			}
			return stored(of(r, 2*d) + sent(of(r^d, 2*d)))
		}
		sum = of(part%p, 1)
	}
	return result(sum)
}

// TestAllReduce compares sums with their definitions, number by number.
func TestAllReduce(t *testing.T) {
	const n = 23
	for _, order := range allOrders {
		for _, rounding := range allRoundings {
			for ranks := 1; ranks <= 13; ranks++ {
				operands := operandsOf(1, ranks, n)
				x := Exchange{Wire: Wire{kind: kindBF16}, Result: Wire{kind: kindBF16}, Order: order, Rounding: rounding}
				sum, traffic, err := x.AllReduce(t.Context(), operands)
				require.NoError(t, err)
				per := (n + ranks - 1) / ranks
				for i := range n {
					column := make([]float32, ranks)
					for r := range column {
						column[r] = operands[r][i]
					}
					require.Equal(t, plainSum(order, rounding, column, i/per), sum[i], "%v, %v, %d ranks, element %d", order, rounding, ranks, i)
				}
				if ranks > 1 && rounding != RoundOnce {
					require.Equal(t, []string{"bf16"}, traffic.Formats())
				}
			}
		}
	}
}

// TestRankOrderFP32 is the sum that a loop gives.
func TestRankOrderFP32(t *testing.T) {
	operands := operandsOf(2, 7, 100)
	sum, traffic, err := Exchange{}.AllReduce(t.Context(), operands)
	require.NoError(t, err)
	for i := range sum {
		want := operands[0][i]
		for _, o := range operands[1:] {
			want += o[i]
		}
		require.Equal(t, want, sum[i])
	}
	require.Equal(t, map[string]Volume{"fp32": {6, 2400}}, traffic[0])
	require.Equal(t, map[string]Volume{"fp32": {1, 400}}, traffic[3])
}

// TestCastMessage: what has no scale is rounded as it is, saturates at 448 and vanishes below
// half of the smallest subnormal, 2^-9.
func TestCastMessage(t *testing.T) {
	w := wire(t, "e4m3-cast")
	x := Exchange{Name: "x", Cols: 4, Wire: w, Order: OrderScatter}
	nothing := make([]float32, 8)
	values := []float32{1000, -0.0009, 1.0625, 0.3, -449, 0x1p-9, 17, 1e-3}
	parts, traffic, err := x.ReduceScatter(t.Context(), [][]float32{nothing, values})
	require.NoError(t, err)
	require.Equal(t, []float32{448, 0, 1, 0.3125}, parts[:4])
	require.Equal(t, []float32{-449, 0x1p-9, 17, 1e-3}, parts[4:], "what stays is as it was")
	require.Equal(t, map[string]Volume{"e4m3-cast": {1, 4}}, traffic[1], "no scales")
	shared := Exchange{Wire: w, Amax: AmaxShared}
	require.ErrorIs(t, shared.Check(), ErrInput)
	require.ErrorIs(t, Wire{kind: kindCast, Recipe: scaling.Recipe{Format: 99}}.Check(), ErrInput)
}

// TestCodedMessages has every message quantized by itself, rows by token.
func TestCodedMessages(t *testing.T) {
	const rows, cols = 6, 40
	operands := operandsOf(3, 3, rows*cols)
	for _, name := range wireNames() {
		w := wire(t, name)
		if w.kind != kindCoded {
			continue
		}
		x := Exchange{Name: "x", Cols: cols, Wire: w, Result: w, Order: OrderScatter}
		parts, _, err := x.ReduceScatter(t.Context(), operands)
		require.NoError(t, err)
		through := func(values []float32) []float32 {
			q := tensor.Tensor{Shape: []int{len(values) / cols, cols}}
			require.NoError(t, scaling.Quantize(t.Context(), &q, values, scaling.Quantizer{Recipe: w.Recipe}))
			back := make([]float32, len(values))
			tensor.Dequantize(back, &q)
			return back
		}
		for part := range 3 {
			lo, hi := part*2*cols, (part+1)*2*cols
			sum := make([]float32, hi-lo)
			for r, o := range operands {
				v := o[lo:hi]
				if r != part {
					v = through(v)
				}
				for i := range sum {
					if r == 0 {
						sum[i] = v[i]
					} else {
						sum[i] += v[i]
					}
				}
			}
			requireSame(t, through(sum), parts[lo:hi], name)
		}
	}
}

// TestReducer compares with the FP8 sums of a Reducer: codes of E4M3 under a scale
// that all share, here 1, and partial sums in it.
func TestReducer(t *testing.T) {
	const n, ranks = 1000, 6
	operands := operandsOf(4, ranks, n)
	operands[2][17] = 448
	want := make([]float32, n)
	reducer := Reducer{FP8: true}
	reducer.Mean(0, want, operands)
	x := Exchange{Wire: wire(t, "e4m3-tensor"), Result: wire(t, "e4m3-tensor"), Rounding: RoundStored, Amax: AmaxShared}
	sum, traffic, err := x.AllReduce(t.Context(), operands)
	require.NoError(t, err)
	for i := range sum {
		sum[i] *= float32(1 / float64(ranks))
	}
	requireSame(t, want, sum)
	require.Equal(t, map[string]Volume{"amax": {1, 4}, "e4m3-tensor": {1, n + 4}}, traffic[1])
}

// TestLateAmax has the scale of the exchange before, so that what has grown saturates.
func TestLateAmax(t *testing.T) {
	x := Exchange{Wire: wire(t, "e4m3-tensor"), Amax: AmaxLate, Memory: new(AmaxMemory)}
	for _, test := range []struct{ mine, theirs, want float32 }{
		{0, 448, 448},   // the first is in time
		{448, 896, 896}, // 896 becomes 448
		{0, 896, 896},   // and now there is room
		{1000, 1, 1001}, // what is not sent is not rounded
		{0, 1, 1},
	} {
		sum, _, err := x.AllReduce(t.Context(), [][]float32{{test.mine}, {test.theirs}})
		require.NoError(t, err)
		require.InDelta(t, test.want, sum[0], 0.5, "%v", test)
	}
}

// TestTraffic has the volumes that textbooks give.
func TestTraffic(t *testing.T) {
	const n = 240
	for ranks := 2; ranks <= 8; ranks *= 2 {
		operands := operandsOf(5, ranks, n)
		for order, want := range map[Order]int64{
			OrderRing: int64(2 * (ranks - 1) * n * 4), OrderHalving: int64(2 * (ranks - 1) * n * 4), OrderScatter: int64(2 * (ranks - 1) * n * 4),
			OrderRank: int64(2 * (ranks - 1) * n * 4), OrderTree: int64(2 * (ranks - 1) * n * 4),
		} {
			_, traffic, err := Exchange{Order: order}.AllReduce(t.Context(), operands)
			require.NoError(t, err)
			require.Equal(t, want, traffic.Bytes(), "%v, %d ranks", order, ranks)
			if order == OrderRing || order == OrderHalving || order == OrderScatter {
				for r := range ranks { // shared evenly
					require.Equal(t, want/int64(ranks), Traffic{traffic[r]}.Bytes(), "%v, rank %d of %d", order, r, ranks)
				}
			}
		}
	}
	require.Equal(t, int64(2*3*128+2*3*4), wire(t, "e4m3-block").Bytes(2, 3*128))
	require.Equal(t, int64(50+2*4+4), wire(t, "nvfp4").Bytes(2, 50)) // 100 nibbles, 2 rows of 4 blocks, one for all
	require.Equal(t, int64(100+2*2), wire(t, "mxfp8").Bytes(2, 50))
}

func TestRefusals(t *testing.T) {
	two := operandsOf(6, 2, 10)
	for what, call := range map[string]func() error{
		"no operands": func() error { _, _, err := Exchange{}.AllReduce(t.Context(), nil); return err },
		"has 9 elements": func() error {
			_, _, err := Exchange{}.AllReduce(t.Context(), [][]float32{two[0], two[1][:9]})
			return err
		},
		"not whole rows of 3":    func() error { _, _, err := Exchange{Cols: 3}.AllReduce(t.Context(), two); return err },
		"has no scales":          func() error { _, _, err := Exchange{Amax: AmaxShared}.AllReduce(t.Context(), two); return err },
		"late without a Memory":  func() error { x := Exchange{Amax: AmaxLate, Wire: wire(t, "mxfp8")}; return x.Check() },
		"depend on outer ones":   func() error { x := Exchange{Amax: AmaxShared, Wire: wire(t, "nvfp4")}; return x.Check() },
		"unknown order":          func() error { x := Exchange{Order: 9}; return x.Check() },
		"unknown wire \"fp7\"":   func() error { _, err := ParseWire("fp7"); return err },
		"a message has no histo": func() error { return Wire{kind: kindCoded, Recipe: scaling.Recipe{Profile: scaling.TEDelayed}}.Check() },
		"no rank 2 of 2": func() error {
			_, err := Run(t.Context(), 2, func(r *Rank) error { return r.Send(Exchange{}, 2, Subject{}, "send", two[0]) })
			return err
		},
		"for 1 ranks": func() error {
			_, _, err := Exchange{}.AllToAll(t.Context(), [][][]float32{{two[0]}, {two[0]}})
			return err
		},
	} {
		err := call()
		require.ErrorContains(t, err, what)
		require.ErrorIs(t, err, ErrInput, what)
	}
}

func TestNames(t *testing.T) {
	for _, name := range wireNames() {
		w := wire(t, name)
		require.NoError(t, w.Check(), name)
		text, err := w.MarshalText()
		require.NoError(t, err)
		require.Equal(t, name, string(text))
		var back Wire
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, w, back)
	}
	require.Equal(t, "[rank scatter ring tree halving]", fmt.Sprint(allOrders))
	require.Equal(t, "[sent stored once]", fmt.Sprint(allRoundings))
}
