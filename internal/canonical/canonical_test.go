package canonical

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// definition adds the products up as the package's documentation says.
func definition(a, b []float32) float32 {
	type pair struct{ even, odd float32 }
	sums := make([]pair, (len(a)+31)/32)
	for i := range a {
		product := float32(a[i] * b[i])
		s := &sums[i/32]
		if i%32%2 == 0 {
			s.even = float32(s.even + product)
		} else {
			s.odd = float32(s.odd + product)
		}
	}
	total := float32(0)
	for _, s := range sums {
		total = float32(total + float32(s.even+s.odd))
	}
	return total
}

// same reports whether x is y, or the canonical NaN where y is any.
func same(x, y float32) bool {
	if y != y {
		return math.Float32bits(x) == 0x7FC00000
	}
	return math.Float32bits(x) == math.Float32bits(y)
}

// random returns values whose sums round often; special ones put in zeros of
// both signs, infinities and NaN.
func random(r *rand.Rand, n int, special bool) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.Ldexp(r.NormFloat64(), r.IntN(12)))
		if special && r.IntN(20) == 0 {
			v[i] = []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), math.Float32frombits(0x7F800000 | r.Uint32())}[r.IntN(5)]
		}
	}
	return v
}

func TestDot(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 131 {
		for trial := range 20 {
			// Longer operands: only the length of a counts.
			a, b, c := random(r, n, trial > 10), random(r, n+trial%3, trial > 10), random(r, n+trial%2, trial > 10)
			one := Dot(a, b)
			p, q := DotPair(a, b, c)
			if want := definition(a, b); !same(one, want) || !same(p, want) {
				t.Fatalf("length %d: Dot %v, DotPair %v, want %v", n, one, p, want)
			}
			if want := definition(a, c); !same(q, want) {
				t.Fatalf("length %d: second of DotPair %v, want %v", n, q, want)
			}
		}
	}
}

// TestOrder checks sums that come out otherwise in any other order.
func TestOrder(t *testing.T) {
	const big = 1 << 24 // adding 1 to it changes nothing
	ones := make([]float32, 66)
	for i := range ones {
		ones[i] = 1
	}
	for _, c := range []struct {
		set  map[int]float32
		want float32
	}{
		{nil, 66},
		{map[int]float32{0: big}, big + 16 + 34},       // 15 ones are lost, those of odd offset are not
		{map[int]float32{1: big}, big + 16 + 34},       // the other way round
		{map[int]float32{30: big}, big + 16 + 16 + 34}, // the 15 before it are not lost: 16, rounded to even
		{map[int]float32{64: big, 65: -big}, 64},       // alone in their chunk
		{map[int]float32{0: big, 31: -big}, 15 + 34},   // the ones of odd offset survive
	} {
		a := append([]float32{}, ones...)
		for i, v := range c.set {
			a[i] = v
		}
		require.Equal(t, definition(a, ones), Dot(a, ones))
		p, q := DotPair(a, ones, ones)
		require.Equal(t, []float32{c.want, c.want, c.want}, []float32{Dot(a, ones), p, q}, "%v", c.set)
	}
}

// TestZeros checks that a total is never -0 and that zeros behind it change
// nothing.
func TestZeros(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	negative := float32(math.Copysign(0, -1))
	for n := range 70 {
		a, b := make([]float32, n), random(r, n, false)
		for i := range a {
			a[i] = negative
			b[i] = float32(math.Abs(float64(b[i])))
		}
		p, q := DotPair(a, b, b)
		require.Equal(t, []uint32{0, 0, 0}, []uint32{math.Float32bits(Dot(a, b)), math.Float32bits(p), math.Float32bits(q)})

		a = random(r, n, false)
		want := Dot(a, b)
		for range 40 {
			a, b = append(a, negative), append(b, 7)
			require.True(t, same(want, Dot(a, b)))
			p, q := DotPair(a, b, b)
			require.True(t, same(want, p) && same(want, q))
		}
	}
}

func TestShortOperand(t *testing.T) {
	a := make([]float32, 5)
	require.Panics(t, func() { Dot(a, a[:4:4]) })
	require.Panics(t, func() { DotPair(a, a, a[:4:4]) })
	require.Panics(t, func() { DotPair(a, a[:4:4], a) })
}

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "canonical.")) }

func TestMultiply(t *testing.T) {
	kernelstest.Compare(t, multiply.Name(), func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(3, 3))
		sizes := []int{0, 1, 2, 3, 15, 16, 17, 18, 33}
		for _, m := range sizes {
			for _, n := range sizes {
				checkMultiply(t, r, m, n, []int{0, 1, 31, 32, 33, 70}[r.IntN(6)])
			}
		}
		for _, s := range [][3]int{{200, 33, 40}, {5, 300, 33}, {7, 35, 600}, {3, 31, 257}, {9, 64, 511}, {4, 32, 513}, {195, 32, 256}, {12, 290, 258}, {200, 40, 300}, {200, 300, 20}, {130, 200, 0}} {
			checkMultiply(t, r, s[0], s[1], s[2])
		}
		for range 8 { // what is left of one must not get into the next, whose last pair is half
			checkMultiply(t, r, 8, 64, 70)
			checkMultiply(t, r, 8, 64, 31)
		}
	})
}

// strided returns the given rows, which x is made of, with NaN between them.
func strided(x []float32, rows, n, gap int) Matrix {
	m := Dense(nil, n+gap)
	for i := range rows {
		m.Data = append(m.Data, x[i*n:(i+1)*n]...)
		m.Data = append(m.Data, slices.Repeat([]float32{float32(math.NaN())}, gap)...)
	}
	return m
}

// turned returns the matrix that strided returns, by its columns.
func turned(x []float32, rows, n, gap int) Matrix {
	columns := make([]float32, len(x))
	for i, v := range x {
		columns[i%n*rows+i/n] = v
	}
	return strided(columns, n, rows, gap).T()
}

// checkMultiply compares a product with the definition, of matrices and of transposes.
func checkMultiply(t *testing.T, r *rand.Rand, m, n, k int) {
	t.Helper()
	a, b := random(r, m*k, r.IntN(4) == 0), random(r, n*k, r.IntN(2) == 0)
	forms := []func(x []float32, rows, n, gap int) Matrix{strided, turned}
	for workers := range 3 {
		formA, formB := forms[r.IntN(2)], forms[r.IntN(2)]
		gap := workers * 3
		c := Dense(random(r, m*(n+gap), false), n+gap) // to be overwritten
		before := slices.Clone(c.Data)
		Multiply(c, formA(a, m, k, gap), formB(b, n, k, gap), m, n, k, workers)
		for i, got := range c.Data {
			want, row, column := before[i], i/c.Stride, i%c.Stride
			if column < n {
				want = definition(a[row*k:(row+1)*k], b[column*k:(column+1)*k])
			}
			if !same(got, want) {
				t.Fatalf("[%d, %d, %d], %d workers, element %d: got %v, want %v", m, n, k, workers, i, got, want)
			}
		}
	}
}

func TestFrom(t *testing.T) {
	m := Dense([]float32{1, 2, 3, 4, 5, 6}, 3)
	require.Equal(t, []float32{6}, m.From(1, 2).Data)
	require.Equal(t, []float32{6}, m.T().From(2, 1).Data)
	require.Equal(t, m, m.T().T())
}

// TestPlainCopy: of matrices of more and fewer elements, in strips.
func TestPlainCopy(t *testing.T) {
	p := plainProducts.New().(*plainProduct)
	r := rand.New(rand.NewPCG(6, 6))
	for _, s := range [][2]int{{200, 30}, {3, 5}, {300, 70}, {200, 0}, {1, 300}} {
		rows, cols := s[0], s[1]
		x := random(r, rows*cols, false)
		for workers := range 5 {
			require.Equal(t, Dense(x, cols), p.plainA.of(turned(x, rows, cols, workers), rows, cols, workers), "%v", s)
		}
	}
	m := strided(random(r, 6, false), 2, 3, 1)
	require.Equal(t, m, p.plainA.of(m, 2, 3, 1))
}

// TestMultiplyExact: products of 12 bits need not be rounded.
func TestMultiplyExact(t *testing.T) {
	kernelstest.Compare(t, multiply.Name(), func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(4, 4))
		const m, n, k = 21, 70, 300
		a, b, c := random(r, m*k, false), random(r, n*k, false), make([]float32, m*n)
		for _, x := range [][]float32{a, b} {
			for i, v := range x {
				x[i] = math.Float32frombits(math.Float32bits(v) &^ 0xFFF)
			}
		}
		require.NoError(t, MultiplyExact(t.Context(), Dense(c, n), Dense(a, k), Dense(b, k), m, n, k, 1))
		for i, got := range c {
			if want := definition(a[i/n*k:][:k], b[i%n*k:][:k]); !same(got, want) {
				t.Fatalf("element %d: got %v, want %v", i, got, want)
			}
		}
	})
}

// TestTooShort: kernels would not notice.
func TestTooShort(t *testing.T) {
	full, short := Dense(make([]float32, 64*64), 64), Dense(make([]float32, 64*64-1, 64*64), 64)
	Multiply(full, full, full, 64, 64, 64, 1)
	require.Panics(t, func() { Multiply(short, full, full, 64, 64, 64, 1) })
	require.Panics(t, func() { Multiply(full, short, full, 64, 64, 64, 1) })
	require.Panics(t, func() { Multiply(full, full, short.T(), 64, 64, 64, 1) })
}
