package dots

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "dots.")) }

// TestMultiply compares each sum with one of integers, and that nothing else is written.
func TestMultiply(t *testing.T) {
	kernelstest.At(t, cpu.Generic, func(t *testing.T) { check(t, cpu.Generic) })
	kernelstest.Compare(t, "dots.Multiply", check)
}

func check(t *testing.T, _ cpu.Level) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 2, 3, 7, 32, 129} {
		for rows := Group; rows <= 4*Group; rows += Group {
			stride, sumsStride := n+r.IntN(3), Columns*(1+r.IntN(3))
			x, panel := integers(r, rows*stride), integers(r, n*Columns)
			sums := make([]float64, rows*sumsStride)
			for i := range sums {
				sums[i] = -0.5
			}
			Multiply(sums, sumsStride, x, stride, panel, n, rows)
			for at, got := range sums {
				want, i, j := -0.5, at/sumsStride, at%sumsStride
				if j < Columns {
					exact := int64(0)
					for k := range n {
						exact += int64(x[i*stride+k]) * int64(panel[k*Columns+j])
					}
					want = float64(exact)
				}
				if got != want {
					t.Fatalf("%d rows of %d, strides %d and %d: sum [%d, %d] is %v, want %v", rows, n, stride, sumsStride, i, j, got, want)
				}
			}
		}
	}
}

// integers have products of which hundreds fit 53 bits.
func integers(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(r.IntN(1<<22) - 1<<21)
	}
	return x
}

func TestShort(t *testing.T) {
	const rows, n = Group, 5
	sums, x, panel := make([]float64, rows*Columns), make([]float64, rows*n), make([]float64, n*Columns)
	Multiply(nil, Columns, nil, n, nil, n, 0)
	for _, f := range []func(){
		func() { Multiply(sums[1:], Columns, x, n, panel, n, rows) },
		func() { Multiply(sums, Columns, x[1:], n, panel, n, rows) },
		func() { Multiply(sums, Columns, x, n, panel[1:], n, rows) },
		func() { Multiply(sums, Columns, x, n, panel, n, rows-1) },
		func() { Multiply(sums, Columns, x, n, panel, -1, rows) },
	} {
		require.PanicsWithValue(t, short, f)
	}
}
