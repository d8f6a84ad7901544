package judge

import (
	"math"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/verdict"
)

// errors returns how wrong each element of got is, by the rule of
// [oracle.Compare].
func (w *wanted[T]) errors(got []T) func(i int) verdict.Error {
	return func(i int) verdict.Error {
		g, want := number.Float64(got[i]), number.Float64(w.claimed[i])
		if math.Float64bits(g) == math.Float64bits(want) || g != g && want != want {
			return verdict.Error{}
		}
		bound := w.bound[i]
		if w.bits {
			bound = 0
		}
		distance := math.Abs(g - want)
		if math.IsInf(bound, 1) {
			return verdict.Error{}
		}
		outside := bound == 0 || !(distance <= bound)
		size := distance / bound
		switch {
		case distance != distance || math.IsInf(distance, 0):
			size = math.Inf(1)
		case w.bits:
			size = distance / ulp(w.claimed[i])
		case distance == 0:
			size = 0
		}
		return verdict.Error{Size: size, Outside: outside}
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
