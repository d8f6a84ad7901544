package rounding

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
)

// Count counts v, which was rounded or multiplied and of which x is left, as [fp8.Encode]
// counts: a finite v is saturated where x is infinite, x is subnormal as a float32.
func Count(st *fp8.Stats, v, x float32) {
	st.Elements++
	switch {
	case v != v:
		st.NaN++
		return
	case v > math.MaxFloat32:
		st.PosInf++
		return
	case v < -math.MaxFloat32:
		st.NegInf++
		return
	case v == 0:
		st.Zeros++
		return
	case x > math.MaxFloat32:
		st.SaturatedPos++
	case x < -math.MaxFloat32:
		st.SaturatedNeg++
	case x == 0:
		st.Flushed++
	case math.Abs(float64(x)) < 0x1p-126:
		st.Subnormal++
	}
	magnitude := math.Abs(float64(v))
	st.Amax = max(st.Amax, magnitude)
	if st.Smallest == 0 || magnitude < st.Smallest {
		st.Smallest = magnitude
	}
}

// CountSum counts the sum of a and b: saturated where it is infinite and they are finite, and
// otherwise as the number that it is.
func CountSum(st *fp8.Stats, a, b, sum float32) {
	switch finite := a-a == 0 && b-b == 0; {
	case finite && sum > math.MaxFloat32:
		st.Elements++
		st.SaturatedPos++
	case finite && sum < -math.MaxFloat32:
		st.Elements++
		st.SaturatedNeg++
	default:
		Count(st, sum, sum)
	}
}
