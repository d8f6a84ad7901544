package layers

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// randoms returns n numbers of a stream that range over some powers of two, zeros among
// them.
func randoms(stream uint64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		h := random.Hash(5, stream, uint64(i))
		if h%11 != 0 {
			x[i] = float32(math.Ldexp(float64(random.Normal(99, stream, uint64(i))), int(h>>32%13)-6))
		}
	}
	return x
}

func toBF16(x float32) float32 { return fp8.BFloat16FromFloat32(x).Float32() }

// bitsOf returns the bits of values, which tell -0 and NaN apart.
func bitsOf(values []float32) []uint32 {
	b := make([]uint32, len(values))
	for i, v := range values {
		b[i] = math.Float32bits(v)
	}
	return b
}

func requireSame(t *testing.T, want, got []float32, what ...any) {
	t.Helper()
	require.Equal(t, bitsOf(want), bitsOf(got), what...)
}

func wire(t *testing.T, name string) collective.Wire {
	t.Helper()
	w, err := collective.ParseWire(name)
	require.NoError(t, err)
	return w
}
