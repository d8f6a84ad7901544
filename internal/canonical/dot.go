// Package canonical adds up products of float32 in the canonical order of octavo's
// matrix products: in chunks of 32 from the start, products of even offset into
// one sum, products of odd offset into another, both in order from +0; the pair
// is added, and then added to the total. Every operation is rounded to float32.
//
// It is the order of the TDPBF16PS instruction, so the widest unit of a CPU and
// this plain loop agree to the bit. A total is never -0, and zeros appended to
// both operands change nothing. A NaN total is 7FC00000: processors differ in the
// sign and the payload of the NaN that they compute.
package canonical

import "math"

// Chunk is the number of products that are added up before the total grows.
const Chunk = 32

// Dot returns the dot product of a and b[:len(a)].
func Dot(a, b []float32) (p float32) {
	b = b[:len(a)]
	for lo := 0; lo < len(a); lo += Chunk {
		hi := min(lo+Chunk, len(a))
		var even, odd float32
		i := lo
		for ; i+1 < hi; i += 2 {
			even += float32(a[i] * b[i])
			odd += float32(a[i+1] * b[i+1])
		}
		if i < hi {
			even += float32(a[i] * b[i])
		}
		p += even + odd
	}
	return canonical(p)
}

// canonical returns x, or the canonical NaN for any other.
func canonical(x float32) float32 {
	if x != x {
		return math.Float32frombits(0x7FC00000)
	}
	return x
}

// DotPair returns the dot products of a with b0[:len(a)] and with b1[:len(a)]. Two
// at a time is what a plain Go loop does fastest: four sums stay in registers.
func DotPair(a, b0, b1 []float32) (p0, p1 float32) {
	b0, b1 = b0[:len(a)], b1[:len(a)]
	for len(a) >= Chunk {
		x := (*[Chunk]float32)(a)
		y0, y1 := (*[Chunk]float32)(b0), (*[Chunk]float32)(b1)
		var even0, even1, odd0, odd1 float32
		for i := 0; i < Chunk-1; i += 2 {
			u, v := x[i], x[i+1]
			even0 += float32(u * y0[i])
			even1 += float32(u * y1[i])
			odd0 += float32(v * y0[i+1])
			odd1 += float32(v * y1[i+1])
		}
		p0 += even0 + odd0
		p1 += even1 + odd1
		a, b0, b1 = a[Chunk:], b0[Chunk:], b1[Chunk:]
	}
	if len(a) > 0 {
		p0 += Dot(a, b0)
		p1 += Dot(a, b1)
	}
	return canonical(p0), canonical(p1)
}
