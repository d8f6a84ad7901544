package checkpoint

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/safetensors"
)

// isDouble reports whether a weight holds values of F64.
func isDouble(w *Weight) bool { return w.Scheme == nil && w.Parts[Codes].DType == safetensors.F64 }

// narrowDoubles converts values to T, rounding once to nearest even.
func narrowDoubles[T fp8.Float](r *Reader, dst []T, src []float64) {
	switch dst := any(dst).(type) {
	case []float64:
		copy(dst, src)
		return
	case []float32:
		for i, x := range src {
			dst[i] = float32(x)
		}
		return
	}
	r.wide = grow(r.wide, len(src))
	for i, x := range src {
		r.wide[i] = odd(x)
	}
	narrow(dst, r.wide)
}

// odd rounds to float32 such that rounding the result to a narrower type gives what rounding
// once does: what is not exact is truncated and has its last bit set (Boldo and Melquiond,
// "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
func odd(x float64) float32 {
	y := float32(x)
	if float64(y) == x || x != x {
		return y
	}
	bits := math.Float32bits(y)
	if math.Abs(float64(y)) > math.Abs(x) {
		bits--
	}
	return math.Float32frombits(bits | 1)
}

// measureDoubles returns the error of values that float64 ones became, of which the first is the
// given element.
func measureDoubles[T fp8.Float](values []T, before []float64, first int64) (e Error) {
	for i, x := range before {
		if !number.IsFinite(x) {
			continue
		}
		d := number.Float64(values[i]) - x
		e.Signal += float64(x * x)
		e.Squared += float64(d * d)
		if d = math.Abs(d); d > e.Largest {
			e.Largest, e.Where = d, first+int64(i)
		}
	}
	return e
}
