package nn

import (
	"math"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/internal/rounding"
)

// plainFormats are formats by their definition: bits, and the largest number where
// codes are left out.
var plainFormats = map[NarrowFormat]struct {
	exponent, mantissa int
	max                float64
}{
	NarrowFP16: {5, 10, 65504},
	NarrowE4M3: {4, 3, 448},
	NarrowE5M2: {5, 2, 57344},
	NarrowE3M2: {3, 2, 28},
	NarrowE2M3: {2, 3, 7.5},
	NarrowE2M1: {2, 1, 6},
	"E5M1":     {5, 1, 49152},
	"E4M2":     {4, 2, 448},
	"E4M10":    {4, 10, 511.75},
	"E3M1":     {3, 1, 24},
	"E1M2":     {1, 2, 3.5},
	"E1M1":     {1, 1, 3},
}

// numbersOf returns the numbers of a format that are not negative, by code.
func numbersOf(f NarrowFormat) (numbers []float64) {
	p := plainFormats[f]
	bias := 1<<(p.exponent-1) - 1
	for e := range 1 << p.exponent {
		for m := range 1 << p.mantissa {
			v := math.Ldexp(float64(m), 1-bias-p.mantissa)
			if e > 0 {
				v = math.Ldexp(float64(1<<p.mantissa+m), e-bias-p.mantissa)
			}
			if v <= p.max {
				numbers = append(numbers, v)
			}
		}
	}
	return numbers
}

// plainRound rounds a finite x to a number; between two of them up decides, which is
// told where x lies and whether the lower code is even.
func plainRound(numbers []float64, x float64, up func(fraction float64, even bool) bool) float64 {
	a := math.Abs(x)
	i := sort.SearchFloat64s(numbers, a)
	switch {
	case i == len(numbers):
		i--
	case numbers[i] > a:
		below := numbers[i-1]
		if !up((a-below)/(numbers[i]-below), (i-1)%2 == 0) {
			i--
		}
	}
	return math.Copysign(numbers[i], x)
}

func toNearest(fraction float64, even bool) bool {
	return fraction > 0.5 || fraction == 0.5 && !even
}

// atRandom is the rule of 32 random bits.
func atRandom(random uint64) func(float64, bool) bool {
	return func(fraction float64, _ bool) bool { return math.Floor(fraction*(1<<32)) > float64(random) }
}

// telling returns values of both signs: all numbers, the middles between them, what
// is next to either, and others of any size.
func telling(numbers []float64) (values []float32) {
	near := func(v float64) {
		x := float32(v)
		values = append(values, x, math.Nextafter32(x, math.MaxFloat32), math.Nextafter32(x, 0))
	}
	for i, v := range numbers {
		near(v)
		if i > 0 {
			near((v + numbers[i-1]) / 2)
		}
	}
	largest := numbers[len(numbers)-1]
	near(2*largest - numbers[len(numbers)-2])
	near(4 * largest)
	values = append(values, math.MaxFloat32, math.SmallestNonzeroFloat32, 0x1p-126, 0x1.fp-130)
	for i := range uint64(3000) {
		if x := math.Float32frombits(uint32(random.Hash(1, i, 0)) &^ (1 << 31)); x <= math.MaxFloat32 {
			values = append(values, x)
		}
		values = append(values, float32(largest)*float32(random.Hash(2, i, 0)>>40)/(1<<24))
	}
	for _, v := range values {
		values = append(values, -v)
	}
	return values
}

func requireBits(t *testing.T, want, got, x float32, f NarrowFormat) {
	if math.Float32bits(want) != math.Float32bits(got) {
		t.Fatalf("%s: %v (%08x) became %v, want %v", f, x, math.Float32bits(x), got, want)
	}
}

var unscaled = fp8.Scale{Stored: 1, Multiplier: 1}

func TestNearestByDefinition(t *testing.T) {
	for f := range plainFormats {
		numbers := numbersOf(f)
		values := telling(numbers)
		got := make([]float32, len(values))
		lattice := f.mustNumber().Lattice()
		rounding.Nearest(got, values, &lattice, unscaled)
		for i, x := range values {
			requireBits(t, float32(plainRound(numbers, float64(x), toNearest)), got[i], x, f)
		}
	}
}

func TestStochasticByDefinition(t *testing.T) {
	const seed, first = math.MaxUint64 - 6, 1 << 40
	for f := range plainFormats {
		numbers := numbersOf(f)
		values := telling(numbers)
		got := make([]float32, len(values))
		lattice := f.mustNumber().Lattice()
		rounding.Stochastic(got, values, &lattice, unscaled, seed, first)
		for i, x := range values {
			random := plainMix(plainMix(seed)+first+uint64(i)) >> 32
			requireBits(t, float32(plainRound(numbers, float64(x), atRandom(random))), got[i], x, f)
		}
	}
}

// TestSmallestRandomNumber: what is exact stays, also where the random bits are all 0,
// and what is not goes up there.
func TestSmallestRandomNumber(t *testing.T) {
	const seed = 4
	first := plainUnmix(1) - plainMix(seed)
	require.Zero(t, plainMix(plainMix(seed)+first)>>32)
	lattice := NarrowE2M1.mustNumber().Lattice()
	for x, want := range map[float32]float32{0: 0, 1: 1, -6: -6, 0.5: 0.5, 1.001: 1.5, -0.001: -0.5, 0x1p-34: 0, 0x1p-33: 0.5} {
		got := make([]float32, 1)
		rounding.Stochastic(got, []float32{x}, &lattice, unscaled, seed, first)
		require.Equal(t, want, got[0], "%v", x)
	}
}

// plainUnmix is the inverse of plainMix.
func plainUnmix(x uint64) uint64 {
	inverse := func(odd uint64) uint64 { // by Newton's method
		y := odd
		for range 6 {
			y *= 2 - odd*y
		}
		return y
	}
	unshift := func(x uint64, n int) uint64 {
		y := x
		for range 64 / n {
			y = x ^ y>>n
		}
		return y
	}
	x = unshift(x, 31) * inverse(0x94D049BB133111EB)
	x = unshift(x, 27) * inverse(0xBF58476D1CE4E5B9)
	return unshift(x, 30) - 0x9E3779B97F4A7C15
}

// TestRoundingWorkers: an element's random bits are those of its place, whoever rounds
// it.
func TestRoundingWorkers(t *testing.T) {
	const rows, cols = 150, 140
	values := randoms(1, rows*cols)
	for _, f := range []NarrowFormat{NarrowBF16, NarrowE2M1} {
		for _, policy := range []fp8.Policy{{}, {Rounding: fp8.Stochastic, Seed: 1}} {
			one, many := newRounder(DefaultRounding(f).Input, 1), newRounder(DefaultRounding(f).Input, 4)
			require.Equal(t, one.round(values, rows, cols, policy), many.round(values, rows, cols, policy))
		}
	}
}

func TestNotFiniteStays(t *testing.T) {
	values := []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1, -1}
	for _, f := range []NarrowFormat{NarrowBF16, NarrowFP16, NarrowE4M3, NarrowE2M1, "E1M2"} {
		for _, policy := range []fp8.Policy{{}, {Rounding: fp8.Stochastic, Seed: 1}} {
			r := newRounder(Narrowing{Format: f}, 1)
			got := r.round(values, 1, len(values), policy)
			require.Equal(t, values[:2], got[:2], f)
			require.True(t, math.IsNaN(float64(got[2])), f)
			require.Equal(t, values[3:], got[3:], "%s: beside an infinity nothing is scaled", f)
		}
	}
}

// TestBF16ByDefinition tries every sign, exponent and BF16 mantissa, and what lies
// around the middle to the next.
func TestBF16ByDefinition(t *testing.T) {
	const seed, first = 9, 77
	stride := uint32(1)
	if testing.Short() {
		stride = 17
	}
	for upper := uint32(0); upper < 1<<16; upper += stride {
		var values []float32
		for _, lower := range []uint32{0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF} {
			values = append(values, math.Float32frombits(upper<<16|lower))
		}
		nearest, random := make([]float32, len(values)), make([]float32, len(values))
		rounding.NearestBF16(nearest, values)
		rounding.RandomBF16(random, values, seed, first)
		for i, x := range values {
			if x != x || math.IsInf(float64(x), 0) {
				require.True(t, math.IsNaN(float64(x)) == math.IsNaN(float64(nearest[i])))
				require.Equal(t, math.Float32bits(x), math.Float32bits(random[i]))
				require.Equal(t, fp8.BFloat16FromFloat32(x).Float32() == x, nearest[i] == x)
				continue
			}
			below, above := bf16Around(upper)
			fraction := (math.Abs(float64(x)) - below) / (above - below)
			requireBits(t, pick(x, below, above, toNearest(fraction, upper%2 == 0)), nearest[i], x, NarrowBF16)
			bits := plainMix(plainMix(seed)+first+uint64(i)) >> 48
			requireBits(t, pick(x, below, above, fraction*(1<<16)+float64(bits) >= 1<<16), random[i], x, NarrowBF16)
		}
	}
}

// bf16Around returns the magnitudes of a BF16 and of the one after it, 2^128 for that
// after the largest.
func bf16Around(upper uint32) (below, above float64) {
	exponent, mantissa := max(int(upper>>7&0xFF), 1)-127, float64(upper&0x7F)
	if upper>>7&0xFF > 0 {
		mantissa += 128
	}
	return math.Ldexp(mantissa, exponent-7), math.Ldexp(mantissa+1, exponent-7)
}

// pick returns one of two magnitudes with the sign of x.
func pick(x float32, below, above float64, up bool) float32 {
	if up {
		below = above
	}
	return float32(math.Copysign(below, float64(x))) // 2^128 becomes infinite
}

func TestNarrowFormatsThatAreNone(t *testing.T) {
	for _, f := range []NarrowFormat{
		"BF16", "e4m3", "E4M3 ", " E4M3", "E04M3", "E4M+3", "E4M3FN", "E0M3", "E4M0", "E6M1", "E8M6", "E5M11", "E4M-1", "E", "4", "E-1M2",
	} {
		err := Narrowing{Format: f}.check()
		require.ErrorContains(t, err, "want one from E1M1 to E5M10", string(f))
		require.ErrorContains(t, err, `"`+string(f)+`"`)
	}
	for f := range plainFormats {
		require.NoError(t, Narrowing{Format: f}.check())
	}
	require.NoError(t, Narrowing{Format: NarrowBF16}.check())
	require.NoError(t, Narrowing{}.check())
}
