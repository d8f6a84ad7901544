package number

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTwoSum compares with sums of 2,200 bits, which hold every float64.
func TestTwoSum(t *testing.T) {
	exact := func(x, y float64) *big.Float {
		of := func(v float64) *big.Float { return new(big.Float).SetPrec(2200).SetFloat64(v) }
		return new(big.Float).SetPrec(2200).Add(of(x), of(y))
	}
	r := rand.New(rand.NewPCG(2, 5))
	for range 2000 {
		x := math.Ldexp(r.Float64()-0.5, r.IntN(200)-100)
		y := math.Ldexp(r.Float64()-0.5, r.IntN(200)-100)
		sum, rest := TwoSum(x, y)
		want, _ := exact(x, y).Float64()
		require.Equal(t, want, sum)
		require.Zero(t, exact(x, y).Cmp(exact(sum, rest)), "%v + %v", x, y)
	}
}

func TestLeastCommonMultiple(t *testing.T) {
	for a := 1; a <= 40; a++ {
		for b := 1; b <= 40; b++ {
			want := a
			for want%b != 0 {
				want += a
			}
			require.Equal(t, want, LeastCommonMultiple(a, b))
		}
	}
}
