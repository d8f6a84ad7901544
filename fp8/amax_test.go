package fp8_test

import (
	"math"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
)

func TestAmax(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, v := range []struct {
		src  []float64
		amax float32
		nan  bool
	}{
		{nil, 0, false},
		{[]float64{0, math.Copysign(0, -1)}, 0, false},
		{[]float64{1, -2, 1.5}, 2, false},
		{[]float64{3, -2, 1.5}, 3, false},
		{[]float64{nan}, 0, true},
		{[]float64{nan, 0.5, -0.25}, 0.5, true},
		{[]float64{0.5, -nan, -4}, 4, true},
		{[]float64{-inf, 1}, float32(inf), false},
		{[]float64{nan, inf}, float32(inf), true},
		{[]float64{-0x1p-14}, 0x1p-14, false},
	} {
		single, half := make([]float32, len(v.src)), make([]float16.Float16, len(v.src))
		brain := make([]fp8.BFloat16, len(v.src))
		for i, x := range v.src {
			single[i] = float32(x)
			half[i] = float16.Fromfloat32(float32(x))
			brain[i] = fp8.BFloat16FromFloat32(float32(x))
		}
		check := func(amax float32, nan bool) {
			t.Helper()
			require.Equal(t, v.amax, amax, "%v", v.src)
			require.False(t, math.Signbit(float64(amax)), "%v", v.src)
			require.Equal(t, v.nan, nan, "%v", v.src)
		}
		check(fp8.Amax(v.src))
		check(fp8.Amax(single))
		check(fp8.Amax(half))
		check(fp8.Amax(brain))
	}
	amax, _ := fp8.Amax([]float64{1, -(1 + 0x1p-24 + 0x1p-40)})
	require.Equal(t, float32(1+0x1p-23), amax, "float64 is rounded to the nearest float32")
	amax, _ = fp8.Amax([]float64{1e39})
	require.Equal(t, float32(inf), amax)
}
