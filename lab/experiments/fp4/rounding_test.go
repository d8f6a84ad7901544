package fp4

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEden: it keeps what needs no rounding, and the mean of many is right where one is
// not.
func TestEden(t *testing.T) {
	zeros := make([]float32, 256)
	require.Equal(t, zeros, eden(zeros, 1))
	r := rand.New(rand.NewPCG(1, 1))
	x := make([]float32, 1024)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	const draws = 400
	sum := make([]float64, len(x))
	once := 0.0
	for seed := range uint64(draws) {
		y := make([]float64, len(x))
		for i, v := range eden(x, seed) {
			y[i] = float64(v)
			sum[i] += y[i]
		}
		once += lost(x, y, 1) / draws
	}
	require.Equal(t, eden(x, 5), eden(x, 5))
	require.InDelta(t, 0.01, once, 0.003, "E2M1 loses about 1 %%")
	require.Less(t, lost(x, sum, 1./draws), 3*once/draws)
}

func TestNeighbours(t *testing.T) {
	for _, c := range [][3]float64{{0, 0, 0}, {1, 1, 1}, {1.01, 1, 1.125}, {0.001, 0, 0x1p-9}, {447, 416, 448}, {448, 448, 448}, {500, 448, 448}} {
		low, high := neighbours(c[0])
		require.Equal(t, c[1:], []float64{low, high}, c[0])
	}
}

func TestRotate(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6, 7, 9}
	y := append([]float64(nil), x...)
	rotate(y)
	require.NotEqual(t, x, y)
	rotate(y)
	require.InDeltaSlice(t, x, y, 1e-12, "it is its own inverse")
}
