package agree_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/judge/agree"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// e2m1 are the numbers of E2M1 that are not negative.
var e2m1 = []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}

func nearestE2M1(x float64) (best int) {
	for i, v := range e2m1 {
		d, least := math.Abs(math.Abs(x)-v), math.Abs(math.Abs(x)-e2m1[best])
		if d < least || d == least && i%2 == 0 {
			best = i
		}
	}
	return best
}

// fourBits are what NVFP4 makes of a matrix under a global scale: codes of E2M1, and scales of
// 1x16 in E4M3 of amax/6 over it.
func fourBits(x []float32, cols int, global float64) (codes []byte, scales []float32) {
	for lo := 0; lo < len(x); {
		hi := min(lo+16, (lo/cols+1)*cols)
		amax := 0.0
		for _, v := range x[lo:hi] {
			amax = max(amax, math.Abs(float64(v)))
		}
		s, _ := nearest(amax / 6 / global)
		scales = append(scales, float32(s))
		for _, v := range x[lo:hi] {
			code := byte(0)
			if s > 0 {
				code = byte(nearestE2M1(float64(v) / s / global))
			}
			if math.Signbit(float64(v)) {
				code |= 8
			}
			codes = append(codes, code)
		}
		lo = hi
	}
	return codes, scales
}

// TestStaticOuter has checkpoints in NVFP4 that hold the outer scale of inputs, as multipliers and
// as divisors, and engines that use it, or one of the input's own amax.
func TestStaticOuter(t *testing.T) {
	s := shape{10, 40, 96, agree.F32}
	r := rand.New(rand.NewPCG(3, 30))
	x, w := bell(r, s.m*s.k, 1), bell(r, s.n*s.k, 0.02)
	amax, _ := fp8.Amax(x)
	const weights = 0x1p-12 // powers of two, so that a divisor is one too
	for _, divide := range []bool{false, true} {
		for _, global := range []float64{0x1p-8, 0x1p-9, float64(float32(0.0043))} {
			p := scaling.NVFP4ModelOpt
			held, outer := float32(global), float32(weights)
			if divide {
				p, held, outer = scaling.NVFP4CompressedTensors, 1/held, 1/outer
				global = 1 / float64(held)
			}
			codes, scales := fourBits(w, s.k, weights)
			weight := agree.Weight{Rows: s.n, Cols: s.k, InputScale: held, Amax: func() (float32, error) { return 1, nil }}
			weight.Codes = &tensor.Tensor{
				Format: fp8.E2M1, Shape: []int{s.n, s.k}, Block: tensor.Block{Rows: 1, Cols: 16}, Codes: codes, Scales: scales,
				ScaleFormat: tensor.UE4M3Scales, Outer: tensor.Outer{Scales: []float32{outer}, Divide: divide},
			}
			weight.Values = dequantized(weight.Codes)
			side := func(x []float32, global float64) func(i, k int) (float64, float32) {
				codes, scales := fourBits(x, s.k, global)
				return func(i, k int) (float64, float32) {
					at := i*s.k + k
					v := e2m1[codes[at]&7] * float64(scales[at/16]) * global
					if codes[at]&8 != 0 {
						v = -v
					}
					return v, 1
				}
			}
			in, wt := p.Recipe(scaling.Input), p.Recipe(scaling.Weight)
			claim := agree.Claim{Static: true, Recipe: agree.Recipe{Name: string(p), Input: &in, Weight: &wt}}
			verdict := func(static bool, global float64) string {
				l := &agree.Layer{Tokens: s.m, Input: x, InputOf: agree.BF16, Of: s.of, Weight: weight, Passes: []int{s.m}}
				l.Output = sums{side(x, global), side(w, weights)}.product(s.m, s.n, s.k, same)
				c := claim
				c.Static = static
				v, err := agree.Check(t.Context(), l, c, agree.Options{Recipes: recipes()})
				require.NoError(t, err)
				if v.Word() == "wrong" && !static {
					require.Contains(t, strings.Join(v.Causes(), ";"), "the input is quantized under the checkpoint's input scale")
				}
				return v.Word()
			}
			own := float64(amax) / 2688
			require.Equal(t, "right", verdict(true, global), "%v %v", divide, global)
			require.Equal(t, "wrong", verdict(false, global), "%v %v", divide, global)
			require.Equal(t, "wrong", verdict(true, own), "%v %v", divide, global)
		}
	}
}
