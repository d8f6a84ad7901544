package gemm_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/octavo-fp8/octavo/gemm"
)

// TestFMA32 compares fma32 with exact arithmetic where a second rounding could
// show: at ties, in cancellation, among subnormals and at the ends of the range.
func TestFMA32(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	n := 100000
	if testing.Short() {
		n = 5000
	}
	for name, draw := range map[string]func(*rand.Rand) (x, y, z float32){
		"any bits":     anyBits,
		"near":         near,
		"ties":         ties,
		"near ties":    nearTies,
		"cancellation": cancellation,
		"subnormal":    subnormal,
		"overflow":     overflow,
		"special":      special,
	} {
		for range n {
			x, y, z := draw(r)
			got, want := gemm.FMA32(x, y, z), fmaExact(x, y, z)
			if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
				t.Fatalf("%s: %x*%x + %x is %x, want %x", name, x, y, z, got, want)
			}
		}
	}
}

func signed(r *rand.Rand, x float64) float32 {
	return float32(math.Copysign(x, float64(r.IntN(2))-0.5))
}

// bitsOf returns a number of a few significant bits: sums of these are ties, or
// next to one, in many cases.
func bitsOf(r *rand.Rand, exponent int) float32 {
	v := 1.0
	for range r.IntN(3) {
		v += math.Ldexp(1, -r.IntN(24))
	}
	return signed(r, math.Ldexp(v, exponent))
}

func anyBits(r *rand.Rand) (x, y, z float32) {
	return math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32())
}

func near(r *rand.Rand) (x, y, z float32) {
	e, f := r.IntN(40)-20, r.IntN(40)-20
	return signed(r, math.Ldexp(1+r.Float64(), e)), signed(r, math.Ldexp(1+r.Float64(), f)),
		signed(r, math.Ldexp(1+r.Float64(), e+f+r.IntN(110)-55))
}

func ties(r *rand.Rand) (x, y, z float32) {
	e, f := r.IntN(40)-20, r.IntN(40)-20
	return bitsOf(r, e), bitsOf(r, f), bitsOf(r, e+f+r.IntN(60)-30)
}

// nearTies puts the exact sum within a few steps of float64 of a tie, or so near
// that float64 cannot tell: the product is half a step of z but for d*d.
func nearTies(r *rand.Rand) (x, y, z float32) {
	d := math.Ldexp(float64(1+r.IntN(1<<r.IntN(12))), -23)
	x, y = signed(r, 1+d), signed(r, 1-d)
	if r.IntN(2) == 0 {
		y = signed(r, 1+d)
		x = signed(r, 1)
	}
	e := r.IntN(250) - 125
	z = signed(r, math.Ldexp(float64(1<<23+r.IntN(1<<23)), e-23))
	halfStep := e - 24
	if r.IntN(4) == 0 {
		z = signed(r, math.Ldexp(float64(r.IntN(1<<23)), -149))
		halfStep = -150
	}
	return float32(math.Ldexp(float64(x), halfStep/2)), float32(math.Ldexp(float64(y), halfStep-halfStep/2)), z
}

func cancellation(r *rand.Rand) (x, y, z float32) {
	x, y, _ = near(r)
	z = -float32(x * y)
	return x, y, math.Float32frombits(math.Float32bits(z) + uint32(r.IntN(5)) - 2)
}

func subnormal(r *rand.Rand) (x, y, z float32) {
	e := -r.IntN(100)
	x, y = bitsOf(r, e), bitsOf(r, -r.IntN(30)-125-e)
	if r.IntN(2) == 0 {
		x = signed(r, math.Ldexp(1+r.Float64(), e))
	}
	return x, y, signed(r, float64(math.Float32frombits(r.Uint32N(1<<uint(r.IntN(26))))))
}

func overflow(r *rand.Rand) (x, y, z float32) {
	e := r.IntN(60) + 40
	return bitsOf(r, e), bitsOf(r, 125+r.IntN(4)-e), signed(r, math.MaxFloat32*(1-math.Ldexp(r.Float64(), -r.IntN(26))))
}

func special(r *rand.Rand) (x, y, z float32) {
	one := func() float32 {
		return signed(r, []float64{0, 1, math.Inf(1), math.NaN(), math.MaxFloat32, math.SmallestNonzeroFloat32, 0x1p-126}[r.IntN(7)])
	}
	return one(), one(), one()
}
