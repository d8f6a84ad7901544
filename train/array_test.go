package train

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestArrays writes and reads arrays that are longer than what is converted at a
// time.
func TestArrays(t *testing.T) {
	const n = 2*chunkElements + 5
	x, h, o := make(floats, n), make(halves, n), make(octets, n)
	for i, v := range randoms(1, n) {
		x[i], h[i], o[i] = v, fp8.BFloat16FromFloat32(v), byte(i*7)
	}
	arrays := func(x floats, h halves, o octets) []array {
		return []array{
			newArray("x", safetensors.F32, []int{n}, x, finite),
			newArray("h", safetensors.BF16, []int{1, n}, h, finite),
			newArray("o", safetensors.U8, []int{n}, o, notNegative),
		}
	}
	path := filepath.Join(t.TempDir(), "arrays")
	written := arrays(x, h, o)
	require.NoError(t, writeArrays(path, written, nil))
	f, err := safetensors.Open(path)
	require.NoError(t, err)
	defer f.Close()
	x2, h2, o2 := make(floats, n), make(halves, n), make(octets, n)
	for i, a := range arrays(x2, h2, o2) {
		require.NoError(t, a.read(f, written[i].checksum()))
		require.ErrorContains(t, a.read(f, "00000000"), "is damaged")
	}
	require.Equal(t, x, x2)
	require.Equal(t, h, h2)
	require.Equal(t, o, o2)
}
