package fp8

import "math"

// E8M0 is a scale of the OCP Microscaling formats: 2^(b-127), and NaN for FF.
// It has neither sign nor zero nor infinity.
type E8M0 uint8

// E8M0NaN is the scale that makes every value of its block NaN.
const E8M0NaN E8M0 = 0xFF

// Float32 returns the value of e, exactly; 2^-127 is a subnormal float32.
func (e E8M0) Float32() float32 {
	switch e {
	case E8M0NaN:
		return math.Float32frombits(0x7FC00000)
	case 0:
		return math.Float32frombits(1 << 22)
	}
	return math.Float32frombits(uint32(e) << 23)
}

// E8M0FromFloat32 returns the E8M0 whose value is x, which must be NaN or a
// power of two from 2^-127 to 2^127; ok is false for any other x.
func E8M0FromFloat32(x float32) (e E8M0, ok bool) {
	if x != x {
		return E8M0NaN, true
	}
	e = E8M0(math.Float32bits(x) >> 23)
	return e, e != E8M0NaN && e.Float32() == x
}
