package arrays

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestArrays writes and reads arrays that are longer than what is converted at a
// time.
func TestArrays(t *testing.T) {
	const n = 2*chunkElements + 5
	x, h, o := make(Floats, n), make(BFloat16s, n), make(Bytes, n)
	for i := range n {
		v := random.Normal(1, 1, uint64(i))
		x[i], h[i], o[i] = v, fp8.BFloat16FromFloat32(v), byte(i*7)
	}
	arrays := func(x Floats, h BFloat16s, o Bytes) []Array {
		return []Array{
			New("x", safetensors.F32, []int{n}, x, Finite),
			New("h", safetensors.BF16, []int{1, n}, h, Finite),
			New("o", safetensors.U8, []int{n}, o, NotNegative),
		}
	}
	path := filepath.Join(t.TempDir(), "arrays")
	written := arrays(x, h, o)
	require.NoError(t, Write(meter.New(t.Context(), nil, "", 0), path, written, nil))
	f, err := safetensors.Open(path)
	require.NoError(t, err)
	defer f.Close()
	x2, h2, o2 := make(Floats, n), make(BFloat16s, n), make(Bytes, n)
	for i, a := range arrays(x2, h2, o2) {
		sum, err := written[i].Checksum(meter.New(t.Context(), nil, "", 0))
		require.NoError(t, err)
		require.NoError(t, a.Read(meter.New(t.Context(), nil, "", 0), f, sum))
		require.ErrorContains(t, a.Read(meter.New(t.Context(), nil, "", 0), f, "00000000"), "is damaged")
	}
	require.Equal(t, x, x2)
	require.Equal(t, h, h2)
	require.Equal(t, o, o2)
}
