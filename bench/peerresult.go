package bench

import (
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
)

// What is here says what the program of bench/peers must compute. Its operands are
// multiples of 1/8 that are exact in all types, and their sums in float32: any order of
// adding gives the same.

// peerMix returns pseudo-random bits of a number.
func peerMix(x uint32) uint32 {
	x = (x ^ x>>16) * 0x7feb352d
	x = (x ^ x>>15) * 0x846ca68b
	return x ^ x>>16
}

// peerValue is element i of an operand.
func peerValue(seed, i uint32) float64 { return float64(int(peerMix(i+seed)%31)-15) / 8 }

const seedA, seedB = 0, 0x8000_0000

// peerSample is element i of what is converted to fewer bits.
func peerSample(i uint32) float32 { return float32(int(peerMix(i)>>16)-32768) / 4096 }

type element struct{ row, column int }

// someElements returns the corners of a result and others between them.
func someElements(s Shape) []element {
	list := []element{{0, 0}, {0, s.N - 1}, {s.M - 1, 0}, {s.M - 1, s.N - 1}}
	for i := range uint32(12) {
		list = append(list, element{int(peerMix(2*i) % uint32(s.M)), int(peerMix(2*i+1) % uint32(s.N))})
	}
	return list
}

// peerResult returns what an element of a routine's result must be: of a conversion to
// fewer bits its code.
func peerResult(routine string, s Shape, row, column int) float64 {
	switch {
	case routine == "memcpy":
		return float64(peerSample(uint32(column)))
	case strings.HasSuffix(routine, "-to-f32"):
		return peerValue(seedA, uint32(column))
	case strings.HasSuffix(routine, "-to-bf16"):
		bits := math.Float32bits(peerSample(uint32(column)))
		return float64((bits + 0x7FFF + bits>>16&1) >> 16)
	case strings.HasSuffix(routine, "-to-fp8"):
		var code [1]byte
		fp8.Encode(code[:], []float32{peerSample(uint32(column))}, fp8.E4M3, fp8.Policy{}, nil)
		return float64(code[0])
	}
	sum := 0.0
	for k := range s.K {
		sum += peerValue(seedA, uint32(row*s.K+k)) * peerValue(seedB, uint32(column*s.K+k))
	}
	return sum
}
