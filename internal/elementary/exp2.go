package elementary

import "math"

// A polynomial of 2**r for |r| up to 1/2 with a relative error below 4e-18, and with 1 for
// its first term. Remez's exchange gave it.
const (
	two1  = 0x1.62e42fefa39efp-1
	two2  = 0x1.ebfbdff82c5a4p-3
	two3  = 0x1.c6b08d7049fe8p-5
	two4  = 0x1.3b2ab6fba011ap-7
	two5  = 0x1.5d87fe78cd6cfp-10
	two6  = 0x1.4309130ed8cd5p-13
	two7  = 0x1.ffcbfba980f96p-17
	two8  = 0x1.62bfc79d4b59fp-20
	two9  = 0x1.b5267cdfd91eep-24
	two10 = 0x1.e61b4f9a207f5p-28
	two11 = 0x1.e79bb6fc55606p-32
)

// Exp2 returns 2**x. Results beyond the range are +Inf or, through the subnormals, 0. They
// are correctly rounded for every float32 but two, next to the middle of two others:
// -0x1.a7a04cp-14 and 0x1.853a6ep-9, found by trying all.
func Exp2(x float32) float32 {
	if x != x {
		return nan32
	}
	return float32(exp2(float64(x)))
}

// exp2 returns 2**x for the value of a float32, to about an ulp of float64: what is left
// of x after the nearest whole number is exact. x is not NaN.
func exp2(x float64) float64 {
	x = max(-expLimit, min(x, expLimit))
	n := math.Floor(x + 0.5)
	scale := math.Float64frombits(uint64(int64(n)+1023) << 52)
	return float64(exp2Near0(x-n) * scale)
}

// exp2Near0 has the even and the odd terms in two chains, as expNear0.
func exp2Near0(r float64) float64 {
	s := float64(r * r)
	even := float64(two10*s) + two8
	even = float64(even*s) + two6
	even = float64(even*s) + two4
	even = float64(even*s) + two2
	even = float64(even*s) + 1
	odd := float64(two11*s) + two9
	odd = float64(odd*s) + two7
	odd = float64(odd*s) + two5
	odd = float64(odd*s) + two3
	odd = float64(odd*s) + two1
	return even + float64(odd*r)
}
