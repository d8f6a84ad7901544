package number

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
)

// Largest numbers and sizes as their specifications say: IEEE 754, OCP 8-bit Floating Point
// 1.0 and OCP Microscaling 1.0.
func TestFormats(t *testing.T) {
	for _, c := range []struct {
		name  string
		max   float64
		bytes int
	}{
		{"E8M7", 0x1.FEp127, 2}, {"E5M10", 65504, 2}, {"E5M2", 57344, 1}, {"E4M3", 448, 1},
		{"E3M2", 28, 1}, {"E2M3", 7.5, 1}, {"E2M1", 6, 1},
	} {
		f, ok := Parse(c.name)
		require.True(t, ok, c.name)
		require.Equal(t, c.name, f.String())
		require.Equal(t, c.max, f.Max(), c.name)
		require.Equal(t, c.bytes, f.Bytes(), c.name)
	}
	require.Equal(t, float64(math.MaxFloat32), FP32.Max())
	require.Equal(t, 0x1p-23, FP32.Epsilon())
	require.Equal(t, []int{8, 4}, []int{FP64.Bytes(), FP32.Bytes()})
	for _, name := range []string{"", "E8M8", "E0M3", "E6M2", "E5M11", "E04M3", "E4M3 ", "e4m3"} {
		_, ok := Parse(name)
		require.False(t, ok, name)
	}
}

// Rounding gives what encoding and decoding give, whose tests have the definition.
func TestRound(t *testing.T) {
	rounders := map[Format]func(x float32) float32{
		FP32: func(x float32) float32 { return x },
		FP16: func(x float32) float32 { return float16.Fromfloat32(x).Float32() },
		BF16: func(x float32) float32 { return fp8.BFloat16FromFloat32(x).Float32() },
	}
	for f, codec := range map[Format]fp8.Format{E4M3: fp8.E4M3, E5M2: fp8.E5M2, {3, 2}: fp8.E3M2, {2, 3}: fp8.E2M3, {2, 1}: fp8.E2M1} {
		rounders[f] = func(x float32) float32 { return codec.Float32(fp8.EncodeOne(x, codec, fp8.Policy{})) }
	}
	for i := range uint32(1 << 16) {
		for _, low := range []uint32{0, 0x8000, i * 40503 & 0xFFFF} {
			x := math.Float32frombits(i<<16 | low)
			if tf32 := low&0x1FFF == 0 || !IsFinite(x); TF32.Has(x) != tf32 {
				t.Fatalf("TF32 has %v: want %v", x, tf32)
			}
			for f, round := range rounders {
				want := round(x)
				if x != x {
					want = x
				}
				if got := f.Round(x); got != want && (got == got || want == want) {
					t.Fatalf("%v rounds %v to %v: want %v", f, x, got, want)
				}
				if has := want == x || !IsFinite(x); f.Has(x) != has {
					t.Fatalf("%v has %v: want %v", f, x, has)
				}
			}
		}
	}
	require.Equal(t, float32(1), TF32.Round(1+0x1p-11))          // a tie
	require.Equal(t, float32(1+0x1p-9), TF32.Round(1+0x1.8p-10)) // another
}

func TestCanonical(t *testing.T) {
	for _, bits := range []uint32{0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF} {
		require.Equal(t, uint32(0x7FC00000), math.Float32bits(Canonical(math.Float32frombits(bits))))
	}
	for _, bits := range []uint32{0, 1 << 31, 0x7F800000, 0xFF800000, 1, 0x3F800001} {
		require.Equal(t, bits, math.Float32bits(Canonical(math.Float32frombits(bits))))
	}
}

func TestIsFinite(t *testing.T) {
	require.True(t, IsFinite(float32(-math.MaxFloat32)))
	require.True(t, IsFinite(math.MaxFloat64))
	for _, x := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
		require.False(t, IsFinite(x))
		require.False(t, IsFinite(float32(x)))
	}
}

func testType[T fp8.Float](t *testing.T, f Format, one, twoToMinus8 T) {
	require.Equal(t, f, Of[T]())
	for x, y := range map[float32]T{1: one, 0x1p-8: twoToMinus8} {
		var row [2]T
		Narrow(row[:], []float32{x, 0})
		require.Equal(t, y, row[0])
		require.Equal(t, y, From[T](x))
		require.Equal(t, x, Float32(y))
		require.Equal(t, float64(x), Float64(y))
	}
}

func TestTypes(t *testing.T) {
	testType[float64](t, FP64, 1, 0x1p-8)
	testType[float32](t, FP32, 1, 0x1p-8)
	testType[fp8.BFloat16](t, BF16, 0x3F80, 0x3B80)
	testType[float16.Float16](t, FP16, 0x3C00, 0x1C00)
	require.Equal(t, fp8.BFloat16(0x3F80), From[fp8.BFloat16](1+0x1p-8)) // a tie
	require.Equal(t, 1+0x1p-40, Float64(1+0x1p-40))
	require.Equal(t, float32(1), Float32(1+0x1p-40))
}

// TestLargest compares with package math, also where an int has 32 bits.
func TestLargest(t *testing.T) {
	for f, want := range map[Format]float64{FP64: math.MaxFloat64, FP32: math.MaxFloat32, BF16: 0x1.FEp127, FP16: 65504, E5M2: 57344, E4M3: 448} {
		require.Equal(t, want, f.Max(), "%v", f)
	}
}
