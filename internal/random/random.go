// Package random draws numbers by position: hashes of a seed and counters.
package random

import "math/bits"

// Hash mixes a seed and two counters into 64 random bits, three rounds of
// SplitMix64 (Steele, Lea & Flood 2014). Numbers drawn by position rather than in
// turn depend on nothing else that is drawn.
func Hash(seed, a, b uint64) uint64 {
	return Mix(Mix(Mix(seed)+a) + b)
}

// Mix is one round of SplitMix64: a permutation of the 64-bit integers.
func Mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// Below maps 64 random bits to an integer from 0 to n-1.
func Below(random uint64, n int) int {
	high, _ := bits.Mul64(random, uint64(n))
	return int(high)
}

// Normal returns number i of a stream of nearly normal numbers, mean 0 and
// variance 1: the sum of twelve uniform ones, which integers add exactly.
func Normal(seed, stream, i uint64) float32 {
	sum := -12 * 0xFFFF // twice the expected sum, which is not an integer
	for k := range uint64(3) {
		for h := Hash(seed, stream, 3*i+k); h != 0; h >>= 16 {
			sum += 2 * int(h&0xFFFF)
		}
	}
	return float32(sum) / (1 << 17)
}
