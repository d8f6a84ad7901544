package judge

import (
	"math"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
)

// wrong is how wrong an element is.
type wrong struct {
	err     float64 // in units of the bound, or in ulp where bits are demanded
	outside bool    // farther from what is demanded than allowed
}

// errors returns how wrong each element of got is, by the rule of
// [oracle.Compare].
func (w *wanted[T]) errors(got []T) func(i int) wrong {
	return func(i int) wrong {
		g, want := number.Float64(got[i]), number.Float64(w.claimed[i])
		if math.Float64bits(g) == math.Float64bits(want) || g != g && want != want {
			return wrong{}
		}
		bound := w.bound[i]
		if w.bits {
			bound = 0
		}
		distance := math.Abs(g - want)
		if math.IsInf(bound, 1) {
			return wrong{}
		}
		outside := bound == 0 || !(distance <= bound)
		switch {
		case distance != distance || math.IsInf(distance, 0):
			return wrong{math.Inf(1), outside}
		case w.bits:
			return wrong{distance / ulp(w.claimed[i]), outside}
		case distance == 0:
			return wrong{0, outside}
		}
		return wrong{distance / bound, outside}
	}
}

// ulp returns the distance from an element of that magnitude to the next; for one
// that is not finite it is that of zero, as in package oracle.
func ulp[T gemm.Output](x T) float64 {
	f := number.Of[T]()
	least := 1 - f.Bias()
	exponent := least
	if v := number.Float64(x); v != 0 && number.IsFinite(v) {
		_, e := math.Frexp(v)
		exponent = max(e-1, least)
	}
	return math.Ldexp(1, exponent-f.Mantissa)
}
