package aligned

import (
	"math/big"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "aligned.")) }

// TestMultiply compares with a definition in integers of any length.
func TestMultiply(t *testing.T) {
	kernelstest.At(t, cpu.Generic, func(t *testing.T) { check(t, cpu.Generic) })
	kernelstest.Compare(t, "aligned.Multiply", check)
}

func check(t *testing.T, _ cpu.Level) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		n, columns := r.IntN(70), Columns
		if r.IntN(4) == 0 {
			columns = 1 + r.IntN(Columns)
		}
		width := 1 + r.IntN(11) // of significands
		x, y := terms(r, n, width), terms(r, n*columns, width)
		p := Places{Left: r.IntN(mostBits - 2*width + 4)}
		if r.IntN(2) == 0 {
			p = Places{Right: r.IntN(12)}
		}
		var got Sums
		for j := range got.Top {
			got.Top[j], got.Cut[j], got.Value[j] = int32(r.IntN(60)-90), -1, -1
		}
		want := got
		for j := range columns {
			want.define(x, y, columns, j, p)
		}
		got.Multiply(x, y, columns, p, 2*width+p.Left)
		if got != want {
			t.Fatalf("%d terms of %d bits, %d columns, %+v: got %+v, want %+v", n, width, columns, p, got, want)
		}
	}
}

// TestMost has the largest products and sums that kernels take and larger ones, and the
// longest shifts.
func TestMost(t *testing.T) {
	kernelstest.AtLevels(t, "aligned.", func(t *testing.T, _ cpu.Level) {
		const n, most = 33, 1<<13 - 1
		for left := range 8 {
			for _, significand := range []int16{most, -most, 0} {
				for _, exponent := range []int16{-4096, 8192, 0} {
					x, y := make([]Term, n), make([]Term, n*Columns)
					for i := range x {
						x[i] = Term{most, exponent}
					}
					for i := range y {
						y[i] = Term{significand, exponent}
					}
					x[5].Exponent, y[7].Exponent = 8192, 8192
					p := Places{Left: left}
					var got, want Sums
					for j := range want.Top {
						want.define(x, y, Columns, j, p)
					}
					got.Multiply(x, y, Columns, p, 2*13+left)
					require.Equal(t, want, got, "shifted by %d", left)
				}
			}
		}
	})
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

func (s *Sums) define(x, y []Term, columns, j int, p Places) {
	top := int(s.Top[j])
	for k := range x {
		top = max(top, int(x[k].Exponent)+int(y[k*columns+j].Exponent))
	}
	s.Top[j], s.Cut[j], s.Value[j] = int32(top), 0, 0
	for k, v := range x {
		w := y[k*columns+j]
		t := big.NewInt(int64(v.Significand) * int64(w.Significand))
		t.Lsh(t, uint(p.Left))
		shift := uint(top + p.Right - int(v.Exponent) - int(w.Exponent))
		quotient, rest := new(big.Int).QuoRem(t, new(big.Int).Lsh(big.NewInt(1), shift), new(big.Int))
		s.Value[j] += quotient.Int64()
		if rest.Sign() != 0 {
			s.Cut[j]++
		}
	}
}

func TestShort(t *testing.T) {
	var s Sums
	x, y := make([]Term, 3), make([]Term, 3*Columns)
	require.PanicsWithValue(t, short, func() { s.Multiply(x, y[1:], Columns, Places{}, mostBits) })
	require.PanicsWithValue(t, short, func() { s.Multiply(x[:1], y, Columns+1, Places{}, mostBits) })
}
