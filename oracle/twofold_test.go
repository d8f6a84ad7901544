package oracle

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTwofold compares sums with the accumulator: what is sure must be right, and nearly
// everything must be sure, ties included.
func TestTwofold(t *testing.T) {
	r := source(31)
	unsure, all := 0, rounds(4000)
	for range all {
		var got twofold
		var want accumulator
		for range r.IntN(12) {
			p, sa := int64(r.Uint64()>>(12+r.IntN(50))), math.Float32frombits(r.Uint32()&0x7FFFFFFF%0x7F800000)
			sb := float32(math.Ldexp(1+r.Float64(), r.IntN(30)-15))
			if r.IntN(2) == 0 {
				p, sa, sb = p>>45, 0x1p-3, float32(math.Ldexp(1, r.IntN(40)))
			}
			if r.IntN(2) == 0 {
				p = -p
			}
			want.addScaled(int128{p >> 63, uint64(p)}, 0, sa, sb)
			got.addProduct(float64(p), float64(sa)*float64(sb))
		}
		for _, l := range []layout{layout32, layoutB16, layout16} {
			if b, sure := got.bits(l); sure {
				require.Equal(t, l.nearest(want.number()), b)
			} else {
				unsure++
			}
		}
		if x, sure := got.float64(); sure {
			require.Equal(t, math.Float64bits(want.float64()), math.Float64bits(x))
		} else {
			unsure++
		}
	}
	t.Logf("%d of %d not sure", unsure, 4*all)
	require.Less(t, unsure, all/100)
}

// TestTwofoldUnsure has a rest that may be of either sign: what is lost is as large.
func TestTwofoldUnsure(t *testing.T) {
	for _, s := range []twofold{{1, 0x1p-80, 0x1p-80}, {1, 0, 0x1p-200}, {1 + 0x1p-24, 0, 0x1p-140}} {
		_, sure := s.bits(layout32)
		require.False(t, sure, "%v", s)
	}
	_, sure := (&twofold{1, 0x1p-53, 0x1p-120}).float64()
	require.False(t, sure, "a tie")
	x, sure := (&twofold{1, 0x1p-54, 0x1p-120}).float64()
	require.True(t, sure)
	require.Equal(t, 1.0, x)
}

// TestTwofoldNearTies has rests that decide, of either sign, beside ties and one place
// from them.
func TestTwofoldNearTies(t *testing.T) {
	const up, down = 1 + 0x1p-23 + 0x1p-24, 1 + 0x1p-24 // ties to even are rounded there
	for _, c := range []struct {
		hi, lo float64
		want   float32
	}{
		{down, 0, 1}, {up, 0, 1 + 0x1p-22},
		{down, 0x1p-60, 1 + 0x1p-23}, {down, -0x1p-60, 1},
		{up, 0x1p-60, 1 + 0x1p-22}, {up, -0x1p-60, 1 + 0x1p-23},
		{up - 0x1p-52, 0x1p-60, 1 + 0x1p-23}, {down + 0x1p-52, -0x1p-60, 1 + 0x1p-23},
	} {
		for _, sign := range []float64{1, -1} {
			s := twofold{sign * c.hi, sign * c.lo, 0}
			b, sure := s.bits(layout32)
			require.True(t, sure)
			require.Equal(t, float32(sign)*c.want, math.Float32frombits(uint32(b)), "%v", s)
		}
	}
}

// TestTwofoldLost loses what decides a tie.
func TestTwofoldLost(t *testing.T) {
	var s twofold
	for _, x := range []float64{1 + 0x1p-24, 0x1p-70, 0x1p-150, -0x1p-70} {
		s.add(x)
	}
	_, sure := s.bits(layout32)
	require.False(t, sure)
}
