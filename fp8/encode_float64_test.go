package fp8_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/stretchr/testify/require"
)

func identity(x float64) float64 { return x }

func withNegatives(src []float64) []float64 {
	for _, x := range src {
		src = append(src, math.Copysign(x, -1))
	}
	return src
}

func TestEncodeFloat64Boundaries(t *testing.T) {
	var src []float64
	for _, d := range definitions {
		for c := range d.max + 1 {
			for _, x := range []float64{d.value[c], d.midpoint(c), d.value[c+1]} {
				src = append(src, x, math.Nextafter(x, 0), math.Nextafter(x, math.Inf(1)),
					x*(1-0x1p-40), x*(1+0x1p-40), x*(1-0x1p-24), x*(1+0x1p-24))
			}
		}
	}
	require.NoError(t, checkEncode(withNegatives(src), identity))
}

// A float64 just beside a midpoint is that midpoint as float32: narrowing first
// would round twice.
func TestEncodeFloat64RoundsOnce(t *testing.T) {
	for _, d := range definitions {
		for c := range d.limit(0) {
			midpoint := d.midpoint(c)
			below, above := midpoint*(1-0x1p-40), midpoint*(1+0x1p-40)
			require.Equal(t, float32(midpoint), float32(below))
			require.Equal(t, float32(midpoint), float32(above))
			require.Equal(t, byte(c), fp8.EncodeOne(below, d.format, fp8.Policy{}), "%v below %v", d.format, midpoint)
			require.Equal(t, byte(c+1), fp8.EncodeOne(above, d.format, fp8.Policy{}), "%v above %v", d.format, midpoint)
		}
	}
}

func TestEncodeFloat64Extremes(t *testing.T) {
	src := []float64{
		0, math.SmallestNonzeroFloat64, 0x1p-1073, 0x1.fffffffffffffp-1023, 0x1p-1022, 0x1.8p-1022,
		0x1p-150, 0x1p-149, 0x1p-126, 0x1p127, 0x1p128, 0x1.fffffefp127, 0x1p200, 0x1p1023, math.MaxFloat64,
		math.Inf(1), math.NaN(), math.Float64frombits(0x7FF0000000000001), math.Float64frombits(0x7FFFFFFFFFFFFFFF),
	}
	// Every distance of the leading bit from the smallest code.
	for exponent := -1074; exponent < 1024; exponent++ {
		x := math.Ldexp(1, exponent)
		src = append(src, x, math.Nextafter(x, 0), math.Nextafter(x, math.Inf(1)), 1.5*x)
	}
	require.NoError(t, checkEncode(withNegatives(src), identity))
}

func TestEncodeFloat64Random(t *testing.T) {
	n := 60_000
	if testing.Short() {
		n = 10_000
	}
	random := rand.New(rand.NewPCG(1, 2))
	src := make([]float64, n)
	for i := range src {
		switch i % 3 {
		case 0: // any bits
			src[i] = math.Float64frombits(random.Uint64())
		case 1: // in the range of the formats
			src[i] = math.Ldexp(1+random.Float64(), random.IntN(40)-20)
		case 2: // few bits, so that ties are frequent
			src[i] = math.Ldexp(float64(random.IntN(64)), random.IntN(36)-20)
		}
		if random.IntN(2) == 1 {
			src[i] = -src[i]
		}
	}
	require.NoError(t, checkEncode(src, identity))
}
