package collective

import (
	"math"
	"math/big"
)

// exactSum is the exact sum of up to 2^31 float32 numbers: a fixed-point number in limbs
// of 32 bits, the first in units of 2^-149, whose carries wait to the end (Kulisch's
// accumulator). The zero value is 0.
type exactSum struct {
	limbs     [9]int64
	nonFinite bool
}

func (s *exactSum) add(x float32) {
	b := math.Float32bits(x)
	exponent, mantissa := int(b>>23&0xFF), uint64(b&0x7FFFFF)
	switch exponent {
	case 0xFF:
		s.nonFinite = true
		return
	case 0:
	default:
		mantissa |= 1 << 23
		exponent--
	}
	mantissa <<= exponent % 32
	low, high := int64(mantissa&0xFFFFFFFF), int64(mantissa>>32)
	if b>>31 != 0 {
		low, high = -low, -high
	}
	s.limbs[exponent/32] += low
	s.limbs[exponent/32+1] += high
}

// float64 returns the sum rounded once; NaN if a number was NaN or infinite.
func (s *exactSum) float64() float64 {
	if s.nonFinite {
		return math.NaN()
	}
	sum := new(big.Int)
	for i := len(s.limbs) - 1; i >= 0; i-- {
		sum.Lsh(sum, 32)
		sum.Add(sum, big.NewInt(s.limbs[i]))
	}
	f := new(big.Float).SetInt(sum) // exact: its precision is that of the integer
	f.SetMantExp(f, -149)
	v, _ := f.Float64()
	return v
}
