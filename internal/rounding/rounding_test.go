package rounding

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "rounding.")) }

// lattices are those of E1M1, E2M1, E3M2, E4M3 and E5M10.
var lattices = []Lattice{
	{1, 127 << 23, 1.5}, {1, 127 << 23, 6}, {2, 125 << 23, 28}, {3, 121 << 23, 448}, {10, 113 << 23, 65504},
}

var roundings = []struct {
	name    string
	generic roundFunc
	run     func(dst, src []float32, l *Lattice, s fp8.Scale, seed, first uint64)
}{
	{"rounding.Nearest", nearestGeneric, func(dst, src []float32, l *Lattice, s fp8.Scale, _, _ uint64) { Nearest(dst, src, l, s) }},
	{"rounding.Stochastic", stochasticGeneric, Stochastic},
	{"rounding.NearestBF16", nearestBF16Generic, func(dst, src []float32, _ *Lattice, _ fp8.Scale, _, _ uint64) { NearestBF16(dst, src) }},
	{"rounding.RandomBF16", randomBF16Generic, func(dst, src []float32, _ *Lattice, _ fp8.Scale, seed, first uint64) {
		RandomBF16(dst, src, seed, first)
	}},
}

// values are of all bits, or near the numbers of a lattice, with special ones between.
func values(r *rand.Rand, n int, l *Lattice) []float32 {
	special := []uint32{0, 1 << 31, infinityBits, infinityBits | 1<<31, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 1, 0x80000001, math.Float32bits(l.Max)}
	v := make([]float32, n)
	for i := range v {
		switch r.IntN(4) {
		case 0:
			v[i] = math.Float32frombits(r.Uint32())
		case 1:
			v[i] = math.Float32frombits(special[r.IntN(len(special))])
		default:
			step := math.Float32frombits(l.MinNormal) / float32(int(4)<<l.Mantissa)
			v[i] = step * float32(r.IntN(4000)-2000)
		}
	}
	return v
}

// TestLevels compares each kernel with the plain loop, whose results nn's tests compare
// with the definition.
func TestLevels(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 300
	}
	for _, rounding := range roundings {
		kernelstest.Compare(t, rounding.name, func(t *testing.T, _ cpu.Level) {
			r := rand.New(rand.NewPCG(1, 1))
			for round := range rounds {
				n := round % 70
				if round%100 == 0 {
					n = 2*longest + 5
				}
				l := &lattices[r.IntN(len(lattices))]
				m := math.Float32frombits(r.Uint32N(254<<23-1<<23) + 1<<23)
				s := fp8.Scale{Multiplier: m, Stored: 1 / m}
				if round%2 == 0 {
					s = fp8.Scale{Stored: 1, Multiplier: 1}
				}
				seed, first := r.Uint64(), r.Uint64()
				src := values(r, n, l)
				want := make([]float32, n)
				j := newJob(l, s, seed, first)
				if n > 0 {
					rounding.generic(want, src, &j)
				}
				got := make([]float32, n+1)
				if round%3 == 0 { // in place
					copy(got, src)
					src = got[:n:n]
				}
				before := slices.Clone(src)
				got[n] = 77
				rounding.run(got, src, l, s, seed, first)
				for i, x := range got[:n] {
					if math.Float32bits(x) != math.Float32bits(want[i]) {
						t.Fatalf("%+v, %+v: element %d of %d, %v (%08x), became %v (%08x), want %v (%08x)", *l, s, i, n,
							before[i], math.Float32bits(before[i]), x, math.Float32bits(x), want[i], math.Float32bits(want[i]))
					}
				}
				if got[n] != 77 {
					t.Fatalf("%d elements: the one behind them was written", n)
				}
			}
		})
	}
}

func TestMagnitudes(t *testing.T) {
	kernelstest.Compare(t, "rounding.Magnitudes", func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(2, 2))
		for round := range 1000 {
			n := round % 70
			if round%100 == 0 {
				n = 2*longest + 5
			}
			x := make([]float32, n)
			for i := range x {
				x[i] = []float32{0, float32(math.Copysign(0, -1)), float32(r.NormFloat64()), float32(-r.NormFloat64())}[r.IntN(2+round%3)]
			}
			if n > 0 && round%7 == 0 {
				x[r.IntN(n)] = []float32{0x1p-149, -0x1p-149, float32(math.Inf(-1))}[r.IntN(3)]
			}
			var least, greatest float32
			for _, v := range x {
				if v = float32(math.Abs(float64(v))); v > 0 && (least == 0 || v < least) {
					least = v
				}
				greatest = max(greatest, v)
			}
			if a, b := Magnitudes(x); a != least || b != greatest {
				t.Fatalf("%d values: %v and %v, want %v and %v", n, a, b, least, greatest)
			}
			if n > 0 {
				x[r.IntN(n)] = float32(math.NaN())
				if _, b := Magnitudes(x); b == b {
					t.Fatalf("%d values, a NaN among them: the largest magnitude is %v", n, b)
				}
			}
		}
	})
}
