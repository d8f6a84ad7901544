package tensor

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOuterValueHalfWay is about products whose exact value is next to the middle between
// two float32, but is that middle when it is rounded to float64 first.
func TestOuterValueHalfWay(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 4))
	misled := 0
	for range 20000 {
		// p*outer has 55 bits, of which the last 31 are 2^30 plus or minus 1.
		outer := r.Uint64N(1<<23) | 1<<23 | 1
		inverse := new(big.Int).ModInverse(new(big.Int).SetUint64(outer), big.NewInt(1<<31)).Uint64()
		p := inverse * (1<<30 + 1 - 2*r.Uint64N(2)) % (1 << 31)
		shift := []int{0, -180, -160, 90}[r.IntN(4)] // subnormal results and overflow among them
		a, b := math.Ldexp(float64(p), shift), float64(outer)
		want, _ := new(big.Rat).Mul(new(big.Rat).SetFloat64(a), new(big.Rat).SetFloat64(b)).Float32()
		require.Equal(t, want, float32(outerValue(a, b, false)), "%v*%v", a, b)
		require.Equal(t, -want, float32(outerValue(-a, b, false)), "-%v*%v", a, b)
		if float32(a*b) != want {
			misled++
		}
	}
	require.Greater(t, misled, 1000)
}

// TestOuterValue compares quotients and products of random operands with exact arithmetic.
func TestOuterValue(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 5))
	n := 100000
	if testing.Short() {
		n = 20000
	}
	for range n {
		p := math.Ldexp(float64(r.Int64N(1<<32)-1<<31), r.IntN(250)-160)
		outer := float64(math.Float32frombits(1 + r.Uint32N(0x7F7FFFFF)))
		exact, divisor := new(big.Rat).SetFloat64(p), new(big.Rat).SetFloat64(outer)
		want, _ := new(big.Rat).Quo(exact, divisor).Float32()
		require.Equal(t, want, float32(outerValue(p, outer, true)), "%v/%v", p, outer)
		want, _ = exact.Mul(exact, divisor).Float32()
		require.Equal(t, want, float32(outerValue(p, outer, false)), "%v*%v", p, outer)
	}
}
