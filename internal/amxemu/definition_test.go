//go:build linux && amd64 && !purego

package amxemu

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
)

// toFloat32 rounds once to float32, with an unlimited exponent below, and makes zero
// what is then subnormal. A zero is that of float64's sum of the same terms.
func toFloat32(exact *big.Float, zero float64) float32 {
	if exact.Sign() == 0 {
		return float32(zero)
	}
	rounded := new(big.Float).SetPrec(24).SetMode(big.ToNearestEven).Set(exact)
	x, _ := rounded.Float32()
	if new(big.Float).Abs(rounded).Cmp(big.NewFloat(0x1p-126)) < 0 {
		x = float32(math.Copysign(0, float64(exact.Sign())))
	}
	return x
}

// fused is x*y + z.
func fused(x, y, z float32) float32 {
	x, y, z = flushed(x), flushed(y), flushed(z)
	plain := float64(x)*float64(y) + float64(z)
	if plain != plain || math.IsInf(plain, 0) {
		return float32(plain)
	}
	wide := func(v float32) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(float64(v)) }
	product := wide(0).Mul(wide(x), wide(y))
	return toFloat32(product.Add(product, wide(z)), plain)
}

func flushed(x float32) float32 {
	if math.Float32bits(x)&0x7F800000 == 0 {
		return math.Float32frombits(math.Float32bits(x) & (1 << 31))
	}
	return x
}

// definition is TDPBF16PS on the bytes of tiles of the given shape: c of m rows of
// n float32, a of m rows of k pairs of bfloat16, b of k rows of n pairs.
func definition(c, a, b []byte, m, n, k int) {
	narrow := func(t []byte, i int) float32 {
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(t[2*i:])) << 16)
	}
	for i := range m {
		for j := range n {
			var sums [2]float32
			for p := range k {
				for h := range sums {
					sums[h] = fused(narrow(a, (i*k+p)*2+h), narrow(b, (p*n+j)*2+h), sums[h])
				}
			}
			at := c[4*(i*n+j):]
			old := math.Float32frombits(binary.LittleEndian.Uint32(at))
			binary.LittleEndian.PutUint32(at, math.Float32bits(fused(fused(sums[0], 1, sums[1]), 1, old)))
		}
	}
}

// bfloats returns n values: all bits, those about 1, those whose products are near
// the least normal value, or those that cancel.
func bfloats(r *rand.Rand, n, kind int) []byte {
	var t []byte
	for range n {
		bits := uint16(r.Uint32())
		switch kind {
		case 1:
			bits = bits&0x8FFF | 0x3000 // 2^-31 to 2^1
		case 2:
			bits = bits&0x80FF + 0x1F80 // 2^-64 to 2^-62
		case 3:
			bits = bits&0x8000 | 0x3F80 | bits&1
		}
		t = binary.LittleEndian.AppendUint16(t, bits)
	}
	return t
}

// same compares float32, all NaN being one.
func same(x, y []byte) bool {
	for i := 0; i < len(x); i += 4 {
		a, b := binary.LittleEndian.Uint32(x[i:]), binary.LittleEndian.Uint32(y[i:])
		nan := func(bits uint32) bool { return bits&^(1<<31) > 0x7F800000 }
		if a != b && !(nan(a) && nan(b)) {
			return false
		}
	}
	return len(x) == len(y)
}
