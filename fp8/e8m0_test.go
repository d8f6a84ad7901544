package fp8_test

import (
	"math"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/stretchr/testify/require"
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
