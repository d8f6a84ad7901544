package fp8

import (
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/internal/convert"
)

// Amax returns the largest magnitude in src, from which a scale is chosen, and
// whether there was a NaN. Infinities count and NaN does not: amax in packages tensor
// and scaling is this one, while Stats.Amax is the largest finite magnitude. A float64
// magnitude is rounded to the nearest float32. An empty src has amax 0.
func Amax[T Float](src []T) (amax float32, nan bool) {
	switch src := any(src).(type) {
	case []float32:
		return amax32(src)
	case []float64:
		return amaxOf(src, func(x float64) float32 { return float32(x) })
	case []float16.Float16:
		return amax16(src)
	case []BFloat16:
		return amax16(src)
	}
	return amax, nan
}

func amax16[T half](src []T) (amax float32, nan bool) {
	for len(src) >= convert.Step { // as far as kernels can without meeting a NaN
		n := min(len(src), longest) / convert.Step * convert.Step
		var most [1]float32
		if amaxHalves(most[:], src[:n], n) == 0 || most[0] != most[0] {
			break
		}
		amax, src = max(amax, most[0]), src[n:]
	}
	var w wide
	for done := 0; done < len(src); done += wideLength {
		a, n := amax32(widened(&w, src[done:]))
		amax, nan = max(amax, a), nan || n
	}
	return amax, nan
}

func amax32(src []float32) (amax float32, nan bool) {
	fast, done := amaxKernels(src)
	amax, nan = amaxOf(src[done:], func(x float32) float32 { return x })
	return max(amax, fast), nan
}

func amaxOf[T Float](src []T, float func(T) float32) (amax float32, nan bool) {
	for _, x := range src {
		m := math.Float32frombits(math.Float32bits(float(x)) &^ (1 << 31))
		if m > amax {
			amax = m
		} else if m != m {
			nan = true
		}
	}
	return amax, nan
}
