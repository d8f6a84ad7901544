package smooth

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPower compares with the factor x^alpha/w^(1-alpha), in whose logarithm a power of two
// is nearest.
func TestPower(t *testing.T) {
	for _, x := range []float64{0x1p-140, 0.003, 1, 7, 41, 3e5, math.MaxFloat32} {
		for _, w := range []float64{0x1p-120, 0.02, 1, 900} {
			for _, alpha := range []float64{0.1, 0.5, 0.75, 1} {
				factor := math.Pow(x, alpha) / math.Pow(w, 1-alpha)
				got := math.Ldexp(1, Power(alpha, x, w))
				require.InDelta(t, 1, factor/got, 0.4143, "%v of %v and %v", alpha, x, w)
				require.InDelta(t, 1, got/factor, 0.4143, "%v of %v and %v", alpha, x, w)
			}
		}
	}
	inf, nan := math.Inf(1), math.NaN()
	for _, bad := range []float64{0, inf, nan} {
		require.Zero(t, Power(0.5, bad, 8))
		require.Zero(t, Power(0.5, 8, bad))
	}
}
