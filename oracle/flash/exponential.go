package flash

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/elementary"
)

const leastNormal = 0x1p-126

func flush(x float32) float32 {
	if math.Abs(float64(x)) < leastNormal {
		return 0
	}
	return x
}

func (m Exp2Method) exp2(x float32) float32 {
	switch m {
	case Flushed:
		return flush(exp2Rounded(flush(x)))
	case Elementary:
		return elementary.Exp2(x)
	}
	return exp2Rounded(x)
}

func (m Exp2Method) log2(x float32) float32 {
	switch m {
	case Flushed:
		return log2Rounded(flush(x))
	case Elementary:
		return elementary.Log2(x)
	}
	return log2Rounded(x)
}

// of returns 2^x for key k of a tile of n.
func (e *Exponential) of(x float32, k, n int) float32 {
	if e.emulated(k, n) {
		return emulatedExp2(x, e.Degree)
	}
	return e.Method.exp2(x)
}

// emulationPiece is how many keys of a tile FlashAttention-4 treats at a time.
const emulationPiece = 32

func (e *Exponential) emulated(k, n int) bool {
	if e.Degree == 0 || e.Every == 0 {
		return e.Degree != 0
	}
	piece, at := k/emulationPiece, k%emulationPiece&^1
	pieces := (n + emulationPiece - 1) / emulationPiece
	return at%e.Every >= e.Every-e.Some && piece < pieces-1 && piece >= e.Start
}

// polynomials are FlashAttention-4's of 2^x in [0, 1), from its POLY_EX2 of Sollya's
// fpminimax, the constant first.
var polynomials = [6][]float32{
	3: {1, 0.695146143436431884765625, 0.227564394474029541015625, 0.077119089663028717041015625},
	4: {1, 0.693042695522308349609375, 0.2412912547588348388671875, 5.2225358784198760986328125e-2,
		1.3434938155114650726318359375e-2},
	5: {1, 0.693151414394378662109375, 0.24016360938549041748046875, 5.5802188813686370849609375e-2,
		9.01452265679836273193359375e-3, 1.86810153536498546600341796875e-3},
}

// emulatedExp2 is 2^x by a polynomial after Cody and Waite's reduction: x = n + f with
// n the floor, which is found by adding 1.5·2^23 rounding down; then the polynomial of f
// by fused multiply-adds, and n added to its exponent. Below -127 it is that of -127,
// which leaves the exponent's bits 0. NaN counts as -127, as max takes it.
func emulatedExp2(x float32, degree int) float32 {
	if !(x > -127) {
		x = -127
	}
	n := math.Floor(float64(x))
	f := float32(float64(x) - n)
	p := polynomials[degree]
	y := p[degree]
	for i := degree - 1; i >= 0; i-- {
		y = canonical.FMA(y, f, p[i])
	}
	return math.Float32frombits(math.Float32bits(y) + uint32(int32(n))<<23)
}
