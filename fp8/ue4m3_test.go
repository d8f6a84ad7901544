package fp8_test

import (
	"math"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/stretchr/testify/require"
)

func TestUE4M3(t *testing.T) {
	g := newGrid(3, 7, 0x7E)
	for code := range 256 {
		s := fp8.UE4M3(code)
		require.Equal(t, code < 0x80, s.Valid(), "%02x", code)
		if code >= 0x7F {
			require.Equal(t, uint32(0x7FC00000), math.Float32bits(s.Float32()), "%02x", code)
			continue
		}
		require.Equal(t, float32(g.value[code]), s.Float32(), "%02x", code)
		back, ok := fp8.UE4M3FromFloat32(s.Float32())
		require.True(t, ok, "%02x", code)
		require.Equal(t, s, back)
		for _, x := range near32(g.value[code], 1) {
			if x != s.Float32() || math.Signbit(float64(x)) {
				_, ok = fp8.UE4M3FromFloat32(x)
				require.False(t, ok, "%v", x)
			}
		}
	}
	require.Equal(t, float32(448), fp8.UE4M3Max.Float32())
	s, ok := fp8.UE4M3FromFloat32(float32(math.NaN()))
	require.True(t, ok)
	require.Equal(t, fp8.UE4M3NaN, s)
	for _, x := range []float32{-1, 449, 480, float32(math.Inf(1)), float32(math.Inf(-1)), 0x1p-10, math.SmallestNonzeroFloat32} {
		_, ok = fp8.UE4M3FromFloat32(x)
		require.False(t, ok, "%v", x)
	}
}

func TestEncodeUE4M3(t *testing.T) {
	g := newGrid(3, 7, 0x7E)
	encode := func(x float32) int { return int(fp8.EncodeUE4M3(x)) }
	for c := range g.max + 1 {
		for _, at := range []float64{g.value[c], g.midpoint(c), g.value[c+1]} {
			for _, x := range near32(at, 2) {
				want := 0
				if x > 0 {
					want = min(lookup(g.nearest, float64(x)), g.max)
				}
				require.Equal(t, want, encode(x), "%v", x)
			}
		}
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	require.Equal(t, []int{0x7E, 0x7E, 0, 0, 0x7F, 0x7F},
		[]int{encode(inf), encode(math.MaxFloat32), encode(-inf), encode(-500), encode(nan), encode(-nan)})
}
