package halves

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestWiden converts all values, and short slices.
func TestWiden(t *testing.T) {
	for _, l := range cpu.Levels() {
		kernelstest.At(t, l, func(t *testing.T) {
			testWiden(t, func(bits uint16) float16.Float16 { return float16.Frombits(bits) })
			testWiden(t, func(bits uint16) fp8.BFloat16 { return fp8.BFloat16(bits) })
		})
	}
}

func testWiden[T Half](t *testing.T, of func(bits uint16) T) {
	src := make([]T, 1<<16)
	for i := range src {
		src[i] = of(uint16(i))
	}
	for _, n := range []int{0, 1, 15, 16, 17, 33, 1 << 16} {
		dst := make([]float32, n+1)
		dst[n] = 77
		Widen(dst, src[:n])
		for i, x := range dst[:n] {
			if want := src[i].Float32(); math.Float32bits(x) != math.Float32bits(want) &&
				!(math.IsNaN(float64(x)) && math.IsNaN(float64(want)) && math.Signbit(float64(x)) == math.Signbit(float64(want))) {
				t.Fatalf("%T %04x: %v, want %v", src[i], i, x, want)
			}
		}
		require.Equal(t, float32(77), dst[n])
	}
	require.PanicsWithValue(t, short, func() { Widen(make([]float32, 1), src[:2]) })
}

// TestNarrowBF16 rounds numbers half way between two, about there, and of all bits.
func TestNarrowBF16(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	src := make([]float32, 3*longest+7)
	for i := range src {
		bits := r.Uint32()
		if i%2 == 0 {
			bits = bits&0xFFFF0000 + 0x7FFF + r.Uint32N(3)
		}
		src[i] = math.Float32frombits(bits)
	}
	for _, l := range cpu.Levels() {
		kernelstest.At(t, l, func(t *testing.T) {
			for _, n := range []int{0, 1, 15, 16, 17, 33, len(src)} {
				dst, values := make([]fp8.BFloat16, n+1), make([]float32, n)
				dst[n] = 77
				copy(values, src)
				NarrowBF16(dst, values)
				for i, x := range dst[:n] {
					require.Equal(t, fp8.BFloat16FromFloat32(src[i]), x, "%08x", math.Float32bits(src[i]))
				}
				require.Equal(t, fp8.BFloat16(77), dst[n])
			}
		})
	}
	require.PanicsWithValue(t, short, func() { NarrowBF16(make([]fp8.BFloat16, 1), make([]float32, 2)) })
}
