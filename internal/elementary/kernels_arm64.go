//go:build !purego

package elementary

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

// numbers are what the kernels need, as often as a vector has room.
type numbers struct {
	limit, minusLimit    [2]float64
	log2E, ln2, half     [2]float64
	term2, term3, term4  [2]float64
	term5, term6, term7  [2]float64
	term8, term9, term10 [2]float64
	term11, one          [2]float64
	power                [2]float64 // n more than this has the exponent of 2**n as its last bits
	nan                  [4]float32
}

var vector = numbers{
	limit: two(expLimit), minusLimit: two(-expLimit),
	log2E: two(math.Log2E), ln2: two(math.Ln2), half: two(0.5),
	term2: two(term2), term3: two(term3), term4: two(term4),
	term5: two(term5), term6: two(term6), term7: two(term7),
	term8: two(term8), term9: two(term9), term10: two(term10),
	term11: two(term11), one: two(1),
	power: two(1<<52 + 1023),
	nan:   [4]float32{nan32, nan32, nan32, nan32},
}

// vector2 are those of 2**x: ln2 is the factor of the first term.
var vector2 = func() numbers {
	v := vector
	v.ln2 = two(two1)
	v.term2, v.term3, v.term4 = two(two2), two(two3), two(two4)
	v.term5, v.term6, v.term7 = two(two5), two(two6), two(two7)
	v.term8, v.term9, v.term10 = two(two8), two(two9), two(two10)
	v.term11 = two(two11)
	return v
}()

func two(x float64) [2]float64 { return [2]float64{x, x} }

// The kernels take whole vectors; what is left is done without them.
var (
	expTo = kernels.New("elementary.ExpTo", kernels.At[expFunc](cpu.Generic, expGeneric),
		kernels.At[expFunc](cpu.NEON, func(dst, src []float32, minus, times, factor float32) {
			n := len(src) &^ 7
			if n > 0 {
				expNEON(&dst[0], &src[0], n, minus, times, factor, &vector)
			}
			expGeneric(dst[n:], src[n:], minus, times, factor)
		}))
	exp2To = kernels.New("elementary.Exp2To", kernels.At[exp2Func](cpu.Generic, exp2Generic),
		kernels.At[exp2Func](cpu.NEON, func(dst, src []float32, minus, plus float32) {
			n := len(src) &^ 7
			if n > 0 {
				exp2NEON(&dst[0], &src[0], n, minus, plus, &vector2)
			}
			exp2Generic(dst[n:], src[n:], minus, plus)
		}))
	swiglu = kernels.New("elementary.SwiGLU", kernels.At[swigluFunc](cpu.Generic, swigluGeneric),
		kernels.At[swigluFunc](cpu.NEON, func(z, u, g, s []float32) {
			n := len(u) &^ 7
			if n > 0 {
				swigluNEON(&z[0], &u[0], &g[0], &s[0], n, len(s) > 1, &vector)
			}
			if n < len(u) {
				swigluGeneric(z[n:], u[n:], g[n:], factors(s, n, len(u)))
			}
		}))
	swigluGrad = kernels.New("elementary.SwiGLUGrad", kernels.At[swigluGradFunc](cpu.Generic, swigluGradGeneric),
		kernels.At[swigluGradFunc](cpu.NEON, func(du, dg, dz, u, g, s []float32) {
			n := len(dz) &^ 7
			if n > 0 {
				swigluGradNEON(&du[0], &dg[0], &dz[0], &u[0], &g[0], &s[0], n, len(s) > 1, &vector)
			}
			if n < len(dz) {
				swigluGradGeneric(du[n:], dg[n:], dz[n:], u[n:], g[n:], factors(s, n, len(dz)))
			}
		}))
)

//go:noescape
func expNEON(dst, src *float32, n int, minus, times, factor float32, v *numbers)

//go:noescape
func exp2NEON(dst, src *float32, n int, minus, plus float32, v *numbers)

//go:noescape
func swigluNEON(z, u, gate, s *float32, n int, each bool, v *numbers)

//go:noescape
func swigluGradNEON(du, dg, dz, u, gate, s *float32, n int, each bool, v *numbers)
