//go:build !purego

package elementary

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

// numbers are what the kernels need, as often as a vector of AVX2 has room.
type numbers struct {
	limit, minusLimit    [4]float64
	log2E, ln2, half     [4]float64
	term2, term3, term4  [4]float64
	term5, term6, term7  [4]float64
	term8, term9, term10 [4]float64
	term11, one          [4]float64
	power                [4]float64 // n more than this has the exponent of 2**n as its last bits
	sign, nan            [8]float32
	lanes                [16]int32
}

var vector = numbers{
	limit: four(expLimit), minusLimit: four(-expLimit),
	log2E: four(math.Log2E), ln2: four(math.Ln2), half: four(0.5),
	term2: four(term2), term3: four(term3), term4: four(term4),
	term5: four(term5), term6: four(term6), term7: four(term7),
	term8: four(term8), term9: four(term9), term10: four(term10),
	term11: four(term11), one: four(1),
	power: four(1<<52 + 1023),
	sign:  eight(math.Float32frombits(1 << 31)),
	nan:   eight(nan32),
	lanes: [16]int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
}

// vector2 are those of 2**x: ln2 is the factor of the first term.
var vector2 = func() numbers {
	v := vector
	v.ln2 = four(two1)
	v.term2, v.term3, v.term4 = four(two2), four(two3), four(two4)
	v.term5, v.term6, v.term7 = four(two5), four(two6), four(two7)
	v.term8, v.term9, v.term10 = four(two8), four(two9), four(two10)
	v.term11 = four(two11)
	return v
}()

func four(x float64) [4]float64 { return [4]float64{x, x, x, x} }

func eight(x float32) [8]float32 { return [8]float32{x, x, x, x, x, x, x, x} }

var (
	expTo = kernels.New("elementary.ExpTo", kernels.At[expFunc](cpu.Generic, expGeneric),
		kernels.At[expFunc](cpu.AVX2, func(dst, src []float32, minus, times, factor float32) {
			expAVX2(&dst[0], &src[0], len(src), minus, times, factor, &vector)
		}),
		kernels.At[expFunc](cpu.AVX512, func(dst, src []float32, minus, times, factor float32) {
			expAVX512(&dst[0], &src[0], len(src), minus, times, factor, &vector)
		}))
	exp2To = kernels.New("elementary.Exp2To", kernels.At[exp2Func](cpu.Generic, exp2Generic),
		kernels.At[exp2Func](cpu.AVX2, func(dst, src []float32, minus, plus float32) {
			exp2AVX2(&dst[0], &src[0], len(src), minus, plus, &vector2)
		}),
		kernels.At[exp2Func](cpu.AVX512, func(dst, src []float32, minus, plus float32) {
			exp2AVX512(&dst[0], &src[0], len(src), minus, plus, &vector2)
		}))
	swiglu = kernels.New("elementary.SwiGLU", kernels.At[swigluFunc](cpu.Generic, swigluGeneric),
		kernels.At[swigluFunc](cpu.AVX2, func(z, u, g, s []float32) {
			swigluAVX2(&z[0], &u[0], &g[0], &s[0], len(u), len(s) > 1, &vector)
		}),
		kernels.At[swigluFunc](cpu.AVX512, func(z, u, g, s []float32) {
			swigluAVX512(&z[0], &u[0], &g[0], &s[0], len(u), len(s) > 1, &vector)
		}))
	swigluGrad = kernels.New("elementary.SwiGLUGrad", kernels.At[swigluGradFunc](cpu.Generic, swigluGradGeneric),
		kernels.At[swigluGradFunc](cpu.AVX2, func(du, dg, dz, u, g, s []float32) {
			swigluGradAVX2(&du[0], &dg[0], &dz[0], &u[0], &g[0], &s[0], len(dz), len(s) > 1, &vector)
		}),
		kernels.At[swigluGradFunc](cpu.AVX512, func(du, dg, dz, u, g, s []float32) {
			swigluGradAVX512(&du[0], &dg[0], &dz[0], &u[0], &g[0], &s[0], len(dz), len(s) > 1, &vector)
		}))
)

//go:noescape
func expAVX512(dst, src *float32, n int, minus, times, factor float32, v *numbers)

//go:noescape
func exp2AVX512(dst, src *float32, n int, minus, plus float32, v *numbers)

//go:noescape
func swigluAVX512(z, u, gate, s *float32, n int, each bool, v *numbers)

//go:noescape
func swigluGradAVX512(du, dg, dz, u, gate, s *float32, n int, each bool, v *numbers)

//go:noescape
func expAVX2(dst, src *float32, n int, minus, times, factor float32, v *numbers)

//go:noescape
func exp2AVX2(dst, src *float32, n int, minus, plus float32, v *numbers)

//go:noescape
func swigluAVX2(z, u, gate, s *float32, n int, each bool, v *numbers)

//go:noescape
func swigluGradAVX2(du, dg, dz, u, gate, s *float32, n int, each bool, v *numbers)
