package nn

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/random"
)

// gradientTolerance is the largest norm of the error of a gradient, as a
// fraction of the norm of the gradient: five times the worst that rounding to FP32
// leaves in the difference quotients. A wrong term is wrong by far more.
const gradientTolerance = 3e-3

// requireGradient compares got with difference quotients of loss in each element
// of x, which loss must read. Four points make the error of the quotient itself
// of fourth order, so that the step can be large against rounding.
func requireGradient(t *testing.T, name string, got, x []float32, loss func() float64) {
	t.Helper()
	require.Len(t, got, len(x), name)
	const h = 1.0 / 64
	at := func(i int, v float32) float64 {
		old := x[i]
		defer func() { x[i] = old }()
		x[i] = v
		return loss()
	}
	var norm, distance float64
	for i, v := range x {
		near := at(i, v+h) - at(i, v-h)
		far := at(i, v+2*h) - at(i, v-2*h)
		want := (8*near - far) / (12 * h)
		norm += want * want
		distance += (float64(got[i]) - want) * (float64(got[i]) - want)
	}
	require.NotZero(t, norm, "%s: nothing depends on it", name)
	require.Less(t, math.Sqrt(distance/norm), gradientTolerance, name)
}

// randoms returns n normal numbers that depend on the stream only.
func randoms(stream uint64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = random.Normal(99, stream, uint64(i))
	}
	return x
}

// dot64 is a loss for tests: its gradient in y is weights.
func dot64(y, weights []float32) (sum float64) {
	for i, v := range y {
		sum += float64(v) * float64(weights[i])
	}
	return sum
}
