package fp8_test

import (
	"math"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/stretchr/testify/require"
)

// near32 returns x and the n float32 below and above it, of both signs.
func near32(x float64, n int) (values []float32) {
	b := int(math.Float32bits(float32(x)))
	for v := max(b-n, 0); v <= b+n; v++ {
		y := math.Float32frombits(uint32(v))
		values = append(values, y, -y)
	}
	return values
}

func TestEncodeFloat32Boundaries(t *testing.T) {
	var src []float32
	for _, d := range definitions {
		for c := range d.max + 1 {
			src = append(src, near32(d.value[c], 2)...)
			src = append(src, near32(d.midpoint(c), 2)...)
		}
		src = append(src, near32(d.value[d.max+1], 2)...)
	}
	for exponent := -149; exponent < 128; exponent++ {
		src = append(src, near32(math.Ldexp(1, exponent), 2)...)
	}
	src = append(src, near32(math.MaxFloat32, 1)...)
	for _, nan := range []uint32{0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF} { // signalling ones, too
		src = append(src, math.Float32frombits(nan), math.Float32frombits(nan|1<<31))
	}
	require.NoError(t, checkEncode(src, float32Value))
}

func TestEncodeOne(t *testing.T) {
	p := fp8.Policy{Rounding: fp8.Stochastic, Seed: 5}
	for _, d := range definitions {
		for _, x := range []float32{0, 1, -1.0625, 1e-4, 300, 1e9} {
			want, _ := d.encode(float64(x), fp8.Policy{}, 0)
			require.Equal(t, want, fp8.EncodeOne(x, d.format, fp8.Policy{}))
			require.Equal(t, want, fp8.EncodeOne(float64(x), d.format, fp8.Policy{}))
			want, _ = d.encode(float64(x), p, 0)
			require.Equal(t, want, fp8.EncodeOne(x, d.format, p), "stochastic: element 0")
		}
	}
}
