package fp8

import "math"

// UE4M3 is the scale of NVFP4: an [E4M3] without sign. Zero is a scale, 7F is NaN, the
// largest is 448. A byte with its top bit set is no UE4M3.
type UE4M3 uint8

const (
	UE4M3NaN UE4M3 = 0x7F // the scale that makes every value of its block NaN
	UE4M3Max UE4M3 = 0x7E // 448
)

// Valid reports whether s is a UE4M3: whether its top bit is clear.
func (s UE4M3) Valid() bool { return s <= UE4M3NaN }

// Float32 returns the value of s, exactly; that of one that is not valid is NaN.
func (s UE4M3) Float32() float32 {
	if !s.Valid() {
		s = UE4M3NaN
	}
	return decodeTables[E4M3][s]
}

// UE4M3FromFloat32 returns the UE4M3 whose value is x, which must be NaN, +0 or another
// value that it has; ok is false for any other x.
func UE4M3FromFloat32(x float32) (s UE4M3, ok bool) {
	if x != x {
		return UE4M3NaN, true
	}
	if s, ok = EncodeUE4M3(x), !math.Signbit(float64(x)); !ok {
		return 0, false
	}
	return s, s.Float32() == x
}

// EncodeUE4M3 rounds x to the nearest UE4M3, ties to even. What is larger than 448 becomes
// 448, a negative value 0 and a NaN [UE4M3NaN].
func EncodeUE4M3(x float32) UE4M3 {
	switch {
	case x != x:
		return UE4M3NaN
	case !(x > 0):
		return 0
	}
	e := Encoder{layout: &layouts[E4M3], near: nearests[E4M3]}
	code, _ := e.encode32(x, 0)
	return UE4M3(code)
}
