package fp8_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
)

func TestEncodeFloat16(t *testing.T) {
	src := make([]float16.Float16, 1<<16)
	for i := range src {
		src[i] = float16.Frombits(uint16(i))
	}
	require.NoError(t, checkEncode(src, float16Value))
}

func TestEncodeBFloat16(t *testing.T) {
	src := make([]fp8.BFloat16, 1<<16)
	for i := range src {
		src[i] = fp8.BFloat16(i)
	}
	require.NoError(t, checkEncode(src, bfloat16Value))
}

// Narrow types are encoded as the float32 that they are, in all respects.
func TestEncodeScaledHalf(t *testing.T) {
	half, brain := make([]float16.Float16, 1<<16), make([]fp8.BFloat16, 1<<16)
	for i := range half {
		half[i], brain[i] = float16.Frombits(uint16(i)), fp8.BFloat16(i)
	}
	testEncodeScaledHalf(t, half, float16.Float16.Float32)
	testEncodeScaledHalf(t, brain, fp8.BFloat16.Float32)
}

func testEncodeScaledHalf[T float16.Float16 | fp8.BFloat16](t *testing.T, src []T, float func(T) float32) {
	single := make([]float32, len(src))
	for i, x := range src {
		single[i] = float(x)
	}
	const first = 1<<32 - 1000
	for _, f := range fp8.Formats() {
		for _, s := range []fp8.Scale{{}, {Stored: 3}, {Stored: 0.7, Multiplier: 0x1p-20}} {
			p := fp8.Policy{Rounding: fp8.Stochastic, Seed: 4}
			got, want := make([]byte, len(src)), make([]byte, len(src))
			gotStats, wantStats := fp8.Stats{Detail: &fp8.Detail{}}, fp8.Stats{Detail: &fp8.Detail{}}
			fp8.EncodeScaled(got, src, f, p, s, first, &gotStats)
			fp8.EncodeScaled(want, single, f, p, s, first, &wantStats)
			require.Equal(t, want, got)
			requireStats(t, wantStats, gotStats, 0, "%v of %T, %+v", f, src[0], s)
		}
	}
}

func TestBFloat16Float32(t *testing.T) {
	g := newGrid(7, 127, 0x7F7F)
	for i := range 1 << 16 {
		got := float32Value(fp8.BFloat16(i).Float32())
		sign, c := 1-2*float64(i>>15), i&0x7FFF
		want := signedNaN(i>>15 == 1)
		if c <= g.max {
			want = math.Copysign(g.value[c], sign)
		} else if c == g.max+1 {
			want = math.Inf(int(sign))
		}
		if !alike(got, want) {
			t.Fatalf("%04x: %v, want %v", i, got, want)
		}
	}
}

func TestBFloat16FromFloat32(t *testing.T) {
	g := newGrid(7, 127, 0x7F7F)
	sweep(t, func() func([]float32) error {
		at := cursor{first: g.nearest}
		return func(chunk []float32) error {
			for _, x := range chunk {
				var want fp8.BFloat16
				switch {
				case x != x: // payload kept as far as it fits, and quiet
					want = fp8.BFloat16(math.Float32bits(x)>>16) | 0x7FC0
				case x > math.MaxFloat32:
					want = 0x7F80
				default:
					want = fp8.BFloat16(at.at(float64(x))) // max+1 is Inf
				}
				negative := math.Float32frombits(math.Float32bits(x) | 1<<31)
				plus, minus := fp8.BFloat16FromFloat32(x), fp8.BFloat16FromFloat32(negative)
				if plus != want || minus != want|0x8000 {
					return fmt.Errorf("±%v (%08x): %04x %04x, want %04x", x, math.Float32bits(x), plus, minus, want)
				}
			}
			return nil
		}
	})
}
