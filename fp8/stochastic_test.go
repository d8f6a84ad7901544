package fp8_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/stretchr/testify/require"
)

func stochastic(seed uint64) fp8.Policy { return fp8.Policy{Rounding: fp8.Stochastic, Seed: seed} }

// logUniform returns magnitudes from far below the smallest code to above the
// largest, of either sign.
func logUniform(random *rand.Rand, n int) []float32 {
	src := make([]float32, n)
	for i := range src {
		src[i] = float32(math.Ldexp(1+random.Float64(), random.IntN(56)-38))
		if random.IntN(2) == 1 {
			src[i] = -src[i]
		}
	}
	return src
}

func encodeFrom[T fp8.Float](src []T, f fp8.Format, p fp8.Policy, first uint64) []byte {
	codes := make([]byte, len(src))
	fp8.EncodeScaled(codes, src, f, p, fp8.Scale{}, first, nil)
	return codes
}

func TestStochasticPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	src := logUniform(random, 5000)
	for _, first := range []uint64{0, 12345, 1<<32 - 2500, 1<<40 + 7, 5<<32 - 1, math.MaxUint64 - 2000} {
		whole := encodeFrom(src, fp8.E4M3, stochastic(9), first)
		pieces := make([]byte, 0, len(src))
		for at := 0; at < len(src); {
			end := min(at+random.IntN(700), len(src))
			pieces = append(pieces, encodeFrom(src[at:end], fp8.E4M3, stochastic(9), first+uint64(at))...)
			at = end
		}
		require.Equal(t, whole, pieces, "from %d", first)
	}
	require.Equal(t, encodeFrom(src, fp8.E4M3, stochastic(9), 0), encodeFrom(src, fp8.E4M3, stochastic(9), 0))
}

func TestStochasticIndependence(t *testing.T) {
	src := make([]float32, 4096)
	for i := range src {
		src[i] = 1.0625 // halfway
	}
	base := encodeFrom(src, fp8.E4M3, stochastic(1), 0)
	different := func(other []byte) (n int) {
		for i := range base {
			if base[i] != other[i] {
				n++
			}
		}
		return n
	}
	for _, other := range [][]byte{
		encodeFrom(src, fp8.E4M3, stochastic(0), 0),
		encodeFrom(src, fp8.E4M3, stochastic(2), 0),
		encodeFrom(src, fp8.E4M3, stochastic(1<<32+1), 0),
		encodeFrom(src, fp8.E4M3, stochastic(1), 1),
		encodeFrom(src, fp8.E4M3, stochastic(1), 1<<32),
		encodeFrom(src, fp8.E4M3, stochastic(1), 1<<63),
	} {
		require.InDelta(t, 2048, different(other), 5*32, "half of the codes differ")
	}
}

// The codes of every format and source type follow from the definition and from
// the element's 32 bits.
func TestStochasticDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	n := 4000
	if testing.Short() {
		n = 500
	}
	single := logUniform(random, n)
	double := make([]float64, n)
	for i, x := range single {
		double[i] = float64(x) * (1 + random.Float64()*0x1p-24)
	}
	for _, first := range []uint64{0, 1<<32 - 100} {
		for _, d := range definitions {
			for _, overflow := range []fp8.Overflow{fp8.OverflowSaturate, fp8.OverflowNonFinite} {
				p := stochastic(77)
				p.Overflow = overflow
				singleCodes, doubleCodes := encodeFrom(single, d.format, p, first), encodeFrom(double, d.format, p, first)
				for i := range n {
					want, _ := d.encode(float64(single[i]), p, first+uint64(i))
					require.Equal(t, want, singleCodes[i], "%v of %v", d.format, single[i])
					want, _ = d.encode(double[i], p, first+uint64(i))
					require.Equal(t, want, doubleCodes[i], "%v of float64 %v", d.format, double[i])
				}
			}
		}
	}
}

// The bits belong to the interface: a run can be repeated elsewhere and later.
// They were computed apart, from the definitions of SplitMix64's and MurmurHash3's
// finalizers.
func TestStochasticBits(t *testing.T) {
	for _, v := range []struct {
		seed, index uint64
		bits        uint32
	}{
		{0, 0, 0x3FEDA10E},
		{0, 1, 0x267774E3},
		{1, 0, 0x619AE732},
		{0xDEADBEEF, 12345, 0xE5BCDEFE},
		{1, 1<<32 - 1, 0x8799BDCF},
		{1, 1 << 32, 0xDC42FD73},
		{math.MaxUint64, math.MaxUint64, 0x35D1B56F},
		{1, allZero, 0},
		{1, allOne, math.MaxUint32},
	} {
		require.Equal(t, v.bits, randomBits(v.seed, v.index), "seed %d, element %d", v.seed, v.index)
	}
	// Not even these bits move what is exact, and nothing but all of a step is
	// more than all ones.
	require.Equal(t, []byte{0x38}, encodeFrom([]float32{1}, fp8.E4M3, stochastic(1), allZero))
	require.Equal(t, []byte{0x38}, encodeFrom([]float64{1}, fp8.E4M3, stochastic(1), allZero))
	require.Equal(t, []byte{0x39}, encodeFrom([]float64{1 + 0x1p-35}, fp8.E4M3, stochastic(1), allZero))
	require.Equal(t, []byte{0x01}, encodeFrom([]float32{0x1p-41}, fp8.E4M3, stochastic(1), allZero))
	require.Equal(t, []byte{0x00}, encodeFrom([]float32{0x1.fffffep-42}, fp8.E4M3, stochastic(1), allZero))
	require.Equal(t, []byte{0x38}, encodeFrom([]float64{1.125 - 0x1p-52}, fp8.E4M3, stochastic(1), allOne))
}

// The elements of seed 1 whose bits are all zero and all one.
const allZero, allOne = 0x6E20F33B, 0xC0EB3085

// The dropped fraction counts to 32 bits: one step decides.
func TestStochasticThreshold(t *testing.T) {
	for _, d := range definitions {
		for _, index := range []uint64{0, 1, 1 << 33} {
			r := float64(randomBits(8, index))
			for _, c := range []int{0, 1, 3, min(5, d.max), min(40, d.max), d.limit(0)} {
				low, step := d.value[c], d.value[c+1]-d.value[c]
				up := []float64{low + step*math.Ldexp(r+1, -32)}
				down := []float64{low + step*math.Ldexp(r+1-0x1p-8, -32)}
				p := stochastic(8)
				p.Overflow = fp8.OverflowNonFinite
				next := d.code(0, c+1, p)
				require.Equal(t, next, encodeFrom(up, d.format, p, index)[0], "%v above %v", d.format, low)
				require.Equal(t, byte(c), encodeFrom(down, d.format, p, index)[0], "%v above %v", d.format, low)
			}
		}
	}
}

func TestStochasticNeighbours(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	src := logUniform(random, 20_000)
	for _, d := range definitions {
		for i, code := range encodeFrom(src, d.format, stochastic(3), 0) {
			c := lookup(d.value, math.Abs(float64(src[i])))
			limit := d.limit(int(math.Float32bits(src[i]) >> 31))
			if got := d.magnitude(code); got != min(c, limit) && got != min(c+1, limit) {
				t.Fatalf("%v of %v: %02x is no neighbour", d.format, src[i], code)
			}
		}
	}
}

func TestStochasticExact(t *testing.T) {
	for _, d := range definitions {
		for c := range d.limit(0) + 1 {
			src := make([]float32, 200)
			for i := range src {
				src[i] = float32(d.value[c])
			}
			for _, code := range encodeFrom(src, d.format, stochastic(uint64(c)), 0) {
				if int(code) != c {
					t.Fatalf("%v of %v: %02x", d.format, src[0], code)
				}
			}
		}
	}
}

// The share of values rounded up is the fraction, in the normal range, among
// the subnormals and far below the smallest of them.
func TestStochasticMean(t *testing.T) {
	n := 1 << 18
	if testing.Short() {
		n = 1 << 15
	}
	for _, d := range definitions {
		for seed, v := range []struct {
			below    int // code
			fraction float64
		}{
			{0x38, 0.5}, {0x39, 0.25}, {0x45, 0.1}, {0x46, 0.999}, {0x60, 1.0 / 3},
			{1, 0.5}, {2, 0.7}, {0, 0.5}, {0, 0.3}, {0, 0x1p-6}, {0, 0x1p-10},
		} {
			v.below = min(v.below, d.limit(0)-1)
			low, high := d.value[v.below], d.value[v.below+1]
			x := float32(low + v.fraction*(high-low))
			exact := (float64(x) - low) / (high - low)
			single, double := make([]float32, n), make([]float64, n)
			for i := range n {
				single[i], double[i] = x, -float64(x)
			}
			p := stochastic(uint64(seed))
			for _, codes := range [][]byte{encodeFrom(single, d.format, p, 0), encodeFrom(double, d.format, p, 1<<40)} {
				up := 0
				for _, code := range codes {
					up += d.magnitude(code) - v.below
				}
				mean, sigma := float64(n)*exact, math.Sqrt(float64(n)*exact*(1-exact))
				require.InDelta(t, mean, float64(up), 5*sigma, "%v, %v above code %02x", d.format, exact, v.below)
			}
		}
	}
}

// What is below a probability of 2^-32 is dropped.
func TestStochasticTiny(t *testing.T) {
	src := make([]float64, 1<<16)
	for _, d := range definitions {
		for i := range src {
			src[i] = d.value[1] * 0x1.fffffp-33 * math.Ldexp(1, -i%1000)
		}
		codes := encodeFrom(src, d.format, stochastic(1), 0)
		require.Equal(t, make([]byte, len(src)), codes)
	}
}

// The bits of neighbouring elements are uniform and independent by chi-square,
// byte by byte and in pairs.
func TestStochasticUniform(t *testing.T) {
	n := 1 << 15
	if testing.Short() {
		n = 1 << 12
	}
	for _, seed := range []uint64{0, 1, 0xDEADBEEF} {
		var bytes [4][256]int
		var pairs, flips [256]int
		previous := randomBits(seed, uint64(n))
		for index := range uint64(n) {
			r := randomBits(seed, index)
			for i := range bytes {
				bytes[i][byte(r>>(8*i))]++
			}
			pairs[r>>28|previous>>28<<4]++
			flips[byte((r^previous)>>12)]++
			previous = r
		}
		for i := range bytes {
			requireUniform(t, bytes[i][:], n)
		}
		requireUniform(t, pairs[:], n)
		requireUniform(t, flips[:], n)
	}
}

// requireUniform allows five standard deviations of chi-square.
func requireUniform(t *testing.T, counts []int, n int) {
	t.Helper()
	expected, chi2 := float64(n)/float64(len(counts)), 0.0
	for _, c := range counts {
		chi2 += (float64(c) - expected) * (float64(c) - expected) / expected
	}
	degrees := float64(len(counts) - 1)
	require.InDelta(t, degrees, chi2, 5*math.Sqrt(2*degrees))
}
