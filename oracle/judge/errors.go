package judge

import (
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/verdict"
)

// errors returns how wrong each element of got is, by the rule of
// [oracle.Compare].
func (w *wanted[T]) errors(got []T) func(i int) verdict.Error {
	return func(i int) verdict.Error {
		g, want := value(got[i]), value(w.claimed[i])
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

// value widens an element, exactly.
func value[T gemm.Output](x T) float64 {
	switch x := any(x).(type) {
	case float32:
		return float64(x)
	case fp8.BFloat16:
		return float64(x.Float32())
	case float16.Float16:
		return float64(x.Float32())
	}
	return 0
}

// ulp returns the distance from an element of that magnitude to the next; for one
// that is not finite it is that of zero, as in package oracle.
func ulp[T gemm.Output](x T) float64 {
	fraction, least := 23, -126
	switch any(x).(type) {
	case fp8.BFloat16:
		fraction = 7
	case float16.Float16:
		fraction, least = 10, -14
	}
	exponent := least
	if v := value(x); v == v && v != 0 && !math.IsInf(v, 0) {
		_, e := math.Frexp(v)
		exponent = max(e-1, least)
	}
	return math.Ldexp(1, exponent-fraction)
}
