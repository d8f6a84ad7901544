package outliers

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
)

func TestCosineAndGainByHand(t *testing.T) {
	w := mlpWeights{
		up:   &nn.Param{Rows: 2, Cols: 2, Value: []float32{3, 4, 0, 0}},
		gate: &nn.Param{Rows: 2, Cols: 2, Value: []float32{-2, 0, 1, 1}},
	}
	require.InDelta(t, -0.6, w.cosine(0), 1e-12)
	require.Zero(t, w.cosine(1))
	require.Equal(t, 10.0, w.gain(0))
}

// TestCosineAtRandom: half of random directions are nearer.
func TestCosineAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const dim, tries = 64, 4000
	below := 0
	for range tries {
		a, b := make([]float32, dim), make([]float32, dim)
		for i := range dim {
			a[i], b[i] = float32(random.NormFloat64()), float32(random.NormFloat64())
		}
		if math.Abs(scalarProduct(a, b))/math.Sqrt(scalarProduct(a, a)*scalarProduct(b, b)) < cosineAtRandom(dim) {
			below++
		}
	}
	require.InDelta(t, 0.5, float64(below)/tries, 0.03)
}
