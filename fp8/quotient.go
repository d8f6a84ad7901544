package fp8

import (
	"math"

	"github.com/x448/float16"
)

// float32 rounds a scaled value. What is finite becomes at most the largest float32.
func (q Quotient) float32(y float32) float32 {
	if q == QuotientWide || !(math.Abs(float64(y)) <= math.MaxFloat32) {
		return y
	}
	rounded := BFloat16FromFloat32(y).Float32()
	if q == QuotientFloat16 {
		rounded = float16.Fromfloat32(y).Float32()
	}
	if math.IsInf(float64(rounded), 0) {
		return float32(math.Copysign(math.MaxFloat32, float64(y)))
	}
	return rounded
}

// float64 is float32 for float64. Rounded to odd first, a value is rounded once.
func (q Quotient) float64(y float64) float64 {
	if q == QuotientWide || !(math.Abs(y) <= math.MaxFloat64) {
		return y
	}
	narrow := float32(y)
	bits := math.Float32bits(narrow)
	if wide := float64(narrow); wide != y {
		if math.Abs(wide) > math.Abs(y) {
			bits--
		}
		bits |= 1
	}
	return float64(q.float32(math.Float32frombits(bits)))
}
