package fp8_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
)

func TestE8M0(t *testing.T) {
	for i := range 255 {
		e := fp8.E8M0(i)
		require.Equal(t, math.Ldexp(1, i-127), float64(e.Float32()), "%d", i)
		back, ok := fp8.E8M0FromFloat32(e.Float32())
		require.True(t, ok, "%d", i)
		require.Equal(t, e, back)
	}
	require.True(t, math.IsNaN(float64(fp8.E8M0NaN.Float32())))
	require.Equal(t, fp8.E8M0(0xFF), fp8.E8M0NaN)
	for _, bits := range []uint32{0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF} {
		e, ok := fp8.E8M0FromFloat32(math.Float32frombits(bits))
		require.True(t, ok)
		require.Equal(t, fp8.E8M0NaN, e)
	}
}

func TestE8M0FromFloat32Refuses(t *testing.T) {
	refused := []float32{
		0, float32(math.Copysign(0, -1)), 3, -1, -2, -0x1p-127, float32(math.Inf(1)), float32(math.Inf(-1)),
		0x1p-128, 0x1p-149, 0x1.8p-127, 0x1.000002p0, 0x1.fffffep127, 0x1.000004p-127,
	}
	for _, x := range refused {
		_, ok := fp8.E8M0FromFloat32(x)
		require.False(t, ok, "%v", x)
	}
	// Only 255 of the finite float32 are accepted.
	accepted := 0
	for b := uint64(0); b < 1<<32; b += 1 << 19 {
		if x := math.Float32frombits(uint32(b)); x == x {
			if _, ok := fp8.E8M0FromFloat32(x); ok {
				accepted++
			}
		}
	}
	require.Equal(t, 255, accepted)
}

// TestE8M0Rounding compares with powers of two in float64, for values beside powers of
// two, halfway between them and elsewhere.
func TestE8M0Rounding(t *testing.T) {
	for exponent := uint32(0); exponent < 255; exponent++ {
		for _, mantissa := range []uint32{0, 1, 2, 0x200000, 0x3FFFFF, 0x400000, 0x400001, 0x5A5A5A, 0x7FFFFE, 0x7FFFFF} {
			x := math.Float32frombits(exponent<<23 | mantissa)
			down := -127 // the largest power of two that is not above x
			for down < 127 && math.Ldexp(1, down+1) <= float64(x) {
				down++
			}
			up := down
			if math.Ldexp(1, down) < float64(x) {
				up++
			}
			nearest := down
			if float64(x) >= 1.5*math.Ldexp(1, down) || down == -127 {
				nearest = up // below 2^-126 libraries round up
			}
			for r, want := range map[fp8.E8M0Rounding]int{fp8.E8M0Down: down, fp8.E8M0Up: up, fp8.E8M0Nearest: nearest} {
				for _, y := range []float32{x, -x} {
					nonFinite, saturated := fp8.E8M0(want+127), fp8.E8M0(min(want, 127)+127)
					require.Equal(t, nonFinite, r.Encode(y, fp8.OverflowNonFinite), "%v of %v", r, y)
					require.Equal(t, saturated, r.Encode(y, fp8.OverflowSaturate), "%v of %v", r, y)
				}
			}
		}
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for r := range fp8.E8M0Nearest + 1 {
		for sign := float32(-1); sign <= 1; sign += 2 {
			require.Equal(t, fp8.E8M0NaN, r.Encode(sign*inf, fp8.OverflowNonFinite))
			require.Equal(t, fp8.E8M0(0xFE), r.Encode(sign*inf, fp8.OverflowSaturate))
			require.Equal(t, fp8.E8M0NaN, r.Encode(sign*nan, fp8.OverflowNonFinite))
			require.Equal(t, fp8.E8M0NaN, r.Encode(sign*nan, fp8.OverflowSaturate))
		}
	}
	require.Equal(t, float32(0x1p127), fp8.E8M0(0xFE).Float32())
	require.Panics(t, func() { fp8.E8M0Rounding(3).Encode(1, fp8.OverflowSaturate) })
	require.Panics(t, func() { fp8.E8M0Up.Encode(1, 2) })
}
