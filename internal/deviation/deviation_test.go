package deviation

import (
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "deviation.")) }

const infinity = 0x7F800000

var special = []uint32{0, 1 << 31, infinity, infinity | 1<<31, 0x7FC00000, 0xFF800001, 0x7F7FFFFF, 1, 0x80000001}

// pair returns n values, most of them near what they are compared with, special ones between.
func pair(r *rand.Rand, n int, finite bool) (values, others []float32) {
	values, others = make([]float32, n), make([]float32, n)
	for i := range values {
		others[i] = float32(math.Ldexp(r.NormFloat64(), r.IntN(40)-20))
		values[i] = others[i] * (1 + float32(r.IntN(65)-32)/1024)
		if finite {
			continue
		}
		for _, v := range []*float32{&values[i], &others[i]} {
			switch r.IntN(30) {
			case 0:
				*v = math.Float32frombits(special[r.IntN(len(special))])
			case 1:
				*v = math.Float32frombits(r.Uint32())
			}
		}
	}
	return values, others
}

// lengths are those of short slices, and one that is given to kernels in pieces.
func lengths() (all []int) {
	for n := range 70 {
		all = append(all, n, n)
	}
	return append(all, 2*longest+5)
}

// TestLevels compares kernels with the definition, element by element, to the bit.
func TestLevels(t *testing.T) {
	kernelstest.Compare(t, "deviation.Of", func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(1, 1))
		for i, n := range lengths() {
			values, others := pair(r, n, i%2 == 0)
			var squared, signal [16]float64
			largest := 0.0
			for i, v := range values {
				x := float64(others[i])
				if math.IsNaN(x) || math.IsInf(x, 0) {
					continue
				}
				d := float64(v) - x
				squared[i%16] += float64(d * d)
				signal[i%16] += float64(x * x)
				if a := math.Abs(d); a > largest {
					largest = a
				}
			}
			want := Sums{Largest: largest}
			for i := range squared {
				want.Squared += squared[i]
				want.Signal += signal[i]
			}
			got := Of(values, others)
			if math.IsNaN(want.Squared) {
				require.True(t, math.IsNaN(got.Squared), "%d elements", n)
				got.Squared, want.Squared = 0, 0
			}
			require.Equal(t, want, got, "%d elements", n)
		}
	})
}

// TestSums compares with sums that are exact.
func TestSums(t *testing.T) {
	values, others := pair(rand.New(rand.NewPCG(2, 2)), 5000, true)
	exact := func(f func(i int) float64) float64 {
		sum := new(big.Float).SetPrec(1000)
		for i := range values {
			x := new(big.Float).SetPrec(1000).SetFloat64(f(i))
			sum.Add(sum, x.Mul(x, x))
		}
		x, _ := sum.Float64()
		return x
	}
	got := Of(values, others)
	require.InEpsilon(t, exact(func(i int) float64 { return float64(values[i]) - float64(others[i]) }), got.Squared, 1e-13)
	require.InEpsilon(t, exact(func(i int) float64 { return float64(others[i]) }), got.Signal, 1e-13)
}

func TestWhere(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	values := []float32{1, 2, inf, 4, -7, 9}
	others := []float32{1, nan, inf, 3, -5, 7}
	require.Equal(t, Sums{Squared: 1 + 4 + 4, Signal: 1 + 9 + 25 + 49, Largest: 2}, Of(values, others))
	require.Equal(t, 4, Where(values, others, 2))
	require.Equal(t, 3, Where(values, others, 1))
	require.Equal(t, -1, Where(values, others, 3))
	require.PanicsWithValue(t, short, func() { Of(values, others[1:]) })
	require.Zero(t, Of(nil, nil))
}

// TestNoDifference is of a value that is no number where there should be one.
func TestNoDifference(t *testing.T) {
	kernelstest.AtLevels(t, "deviation.Of", func(t *testing.T, _ cpu.Level) {
		values, others := make([]float32, 32), make([]float32, 32)
		values[1], values[17], values[3] = 2, float32(math.NaN()), 1
		s := Of(values, others)
		require.True(t, math.IsNaN(s.Squared))
		require.Equal(t, 2.0, s.Largest)
		values[17] = float32(math.Inf(-1))
		s = Of(values, others)
		require.Equal(t, math.Inf(1), s.Squared)
		require.Equal(t, math.Inf(1), s.Largest)
	})
}

func BenchmarkOf(b *testing.B) {
	values, others := pair(rand.New(rand.NewPCG(1, 1)), 4096, true)
	b.SetBytes(int64(4 * len(values)))
	for b.Loop() {
		Of(values, others)
	}
}
