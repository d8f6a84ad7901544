package aligned

import (
	"math/big"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "aligned.")) }

// TestSum compares with a definition in integers of any length.
func TestSum(t *testing.T) {
	kernelstest.At(t, cpu.Generic, func(t *testing.T) { check(t, cpu.Generic) })
	kernelstest.Compare(t, "aligned.Sum", check)
}

func check(t *testing.T, _ cpu.Level) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 4000 {
		n := r.IntN(70)
		width := 1 + r.IntN(11) // of significands
		x, y := terms(r, n, width), terms(r, n, width)
		p := Places{Left: r.IntN(31 - 2*width + 8), Least: r.IntN(60) - 90}
		bits := 2*width + p.Left
		if r.IntN(2) == 0 {
			p.Left, p.Right = 0, r.IntN(12)
			bits = 2 * width
		}
		value, cut, top := Sum(x, y, p, bits)
		wantValue, wantCut, wantTop := define(x, y, p)
		if value != wantValue || cut != wantCut || top != wantTop {
			t.Fatalf("%d terms of %d bits, %+v: sum %d, cut %d, top %d; want %d, %d, %d", n, width, p, value, cut, top, wantValue, wantCut, wantTop)
		}
	}
}

// terms are those of numbers, of zeros and, in few, of numbers that are not finite.
func terms(r *rand.Rand, n, width int) []Term {
	x := make([]Term, n)
	for i := range x {
		x[i] = Term{int16(r.IntN(1<<(width+1)-1) - (1<<width - 1)), int16(r.IntN(60) - 30)}
		switch {
		case r.IntN(10) == 0:
			x[i] = Term{0, -4096}
		case r.IntN(300) == 0:
			x[i] = Term{1, 8192}
		}
	}
	return x
}

func define(x, y []Term, p Places) (value int64, cut, top int) {
	top = p.Least
	for i := range x {
		top = max(top, int(x[i].Exponent)+int(y[i].Exponent))
	}
	for i := range x {
		t := big.NewInt(int64(x[i].Significand) * int64(y[i].Significand))
		t.Lsh(t, uint(p.Left))
		shift := uint(top + p.Right - int(x[i].Exponent) - int(y[i].Exponent))
		quotient, rest := new(big.Int).QuoRem(t, new(big.Int).Lsh(big.NewInt(1), shift), new(big.Int))
		value += quotient.Int64()
		if rest.Sign() != 0 {
			cut++
		}
	}
	return value, cut, top
}
