package scaling_test

import (
	"cmp"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
)

// extremeAmaxes are the largest float32 numbers, 2^127 and its neighbours, and the smallest
// normal and subnormal numbers.
var extremeAmaxes = []float32{
	math.MaxFloat32, math.Float32frombits(0x7F7FFFFE), math.Float32frombits(0x7F7FFFFD), 0x1.FEp127, 0x1.FCp127, 0x1.C00002p127, 0x1.8p127,
	0x1.000002p127, 0x1p127, 0x1.FFFFFEp126, 0x1p126,
	0x1.000002p-126, 0x1p-126, 0x1.FFFFFCp-127, 0x1p-127, 0x3p-149, 0x1p-148, 0x1p-149,
}

// TestFiniteScales: a tensor that is finite has a scale that is finite and above 0, in every
// profile and format, and the codes that are nearest to its values under that scale. Only
// what the profiles' libraries do to the bit differs, as the package's documentation says.
func TestFiniteScales(t *testing.T) {
	for _, p := range justInTime() {
		for _, f := range formatsOf(p) {
			for _, amax := range extremeAmaxes {
				r := scaling.Recipe{Profile: p, Format: f}
				src := []float32{amax, -amax, amax * 0.7, -amax * 0.3, 0}
				x := quantizeBlock(t, r, src...)
				s := x.Scales[0]
				require.Equal(t, math.Float32bits(r.Scale(amax).Stored), math.Float32bits(s), "%v %v %v", p, f, amax)
				if carries(p, f, amax) {
					require.True(t, s != s, "%v %v %v: %v", p, f, amax, s)
					continue
				}
				require.True(t, s > 0 && s <= math.MaxFloat32, "%v %v %v: scale %v", p, f, amax, s)
				m := r.Scale(amax)
				for i, v := range src {
					y := float32(v * m.Multiplier)
					if m.Multiplier == 0 {
						y = v / cmp.Or(m.Divisor, m.Stored)
					}
					got := f.Float32(x.Codes[i])
					require.Equal(t, nearest(f, y), math.Abs(float64(got)-float64(y)), "%v %v amax %v: %v is %v under %v", p, f, amax, v, got, s)
				}
			}
		}
	}
}

// nearest is the distance of y to the nearest finite value of f.
func nearest(f fp8.Format, y float32) float64 {
	least := math.Inf(1)
	for c := range 256 {
		if v := float64(f.Float32(byte(c))); v-v == 0 {
			least = min(least, math.Abs(v-float64(y)))
		}
	}
	return least
}

// carries reports whether rounding an amax to a format's mantissa, or to one bit, makes it
// 2^128, whose scale is NaN in torchao and compressed-tensors.
func carries(p scaling.Profile, f fp8.Format, amax float32) bool {
	fraction := map[scaling.Profile]int{scaling.MXEven: f.Mantissa(), scaling.MXCompressedTensors: 1}
	n, ok := fraction[p]
	if f == fp8.MXINT8 && p == scaling.MXEven {
		n = 6
	}
	return ok && float64(amax) >= 0x1p128-math.Ldexp(1, 127-n-1)
}
