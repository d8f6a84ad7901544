//go:build linux && amd64 && !purego

package amx

import (
	"math"
	"math/big"
)

// fma is x*y + z rounded once.
func fma(x, y, z float32) float32 {
	plain := float64(x)*float64(y) + float64(z)
	if plain == 0 || plain != plain || math.IsInf(plain, 0) {
		return float32(plain)
	}
	wide := func(v float32) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(float64(v)) }
	product := wide(0).Mul(wide(x), wide(y))
	sum, _ := product.Add(product, wide(z)).Float32()
	return sum
}

// operand is 32 columns of B, or strips of as many rows of A, each of k values of bfloat16.
type operand struct {
	k      int
	values []uint16
}

func (o operand) at(i, k int) float32 {
	return math.Float32frombits(uint32(o.values[i*o.k+k]) << 16)
}

// packA and packB arrange an operand as the kernel wants it.
func (o operand) packA() (packed []uint16) {
	for strip := range len(o.values) / (32 * o.k) {
		one := operand{o.k, o.values[strip*32*o.k : (strip+1)*32*o.k]}
		packed = append(packed, one.pack(func(tile, row, column int) (i, k int) { return 16*tile + row, column })...)
	}
	return packed
}

func (o operand) packB() []uint16 {
	return o.pack(func(tile, row, column int) (i, k int) { return 16*tile + column/2, 2*row + column%2 })
}

func (o operand) pack(source func(tile, row, column int) (i, k int)) (packed []uint16) {
	for k0 := 0; k0 < o.k; k0 += 32 {
		for at := range 2 * 16 * 32 {
			i, k := source(at/512, at/32%16, at%32)
			packed = append(packed, o.values[i*o.k+k0+k])
		}
	}
	return packed
}

// sum is p of one result: the values from k0 on, in chunks of 32.
func sum(a, b operand, i, j, k0, k1 int) float32 {
	var p float32
	for ; k0 < k1; k0 += 32 {
		var even, odd float32
		for k := k0; k < k0+32; k += 2 {
			even = float32(a.at(i, k)*b.at(j, k)) + even // such products are exact
			odd = float32(a.at(i, k+1)*b.at(j, k+1)) + odd
		}
		p += even + odd
	}
	return p
}

// definition is Multiply.
func definition(c []float32, stride int, a, b operand, sa, sb []float32, chunks int) {
	blocks := len(sb) / 32
	for i := range len(a.values) / a.k {
		for block := range blocks {
			scale := sa[(i/32*blocks+block)*32+i%32]
			for j := range 32 {
				p := sum(a, b, i, j, 32*chunks*block, 32*chunks*(block+1))
				x := &c[i*stride+j]
				*x = fma(float32(p*scale), sb[32*block+j], *x)
			}
		}
	}
}
