package attention

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/random"
)

// KeyMeans writes the mean over tokens of each column of each head of k, [KVHeads, Keys, Dim],
// to dst, [KVHeads, Dim], added in float64 in order and rounded once. It is what a
// [Recipe] with SmoothK takes from K: the product of a query with it, times the scale of the
// softmax, is what the query's log-sum-exp lacks then. It panics if a length is wrong.
func KeyMeans(dst, k []float32, s Sizes) {
	if len(k) != s.KVHeads*s.Keys*s.Dim {
		panic("attention: k is not of KVHeads*Keys*Dim elements")
	}
	if len(dst) != s.KVHeads*s.Dim {
		panic("attention: means are not of KVHeads*Dim elements")
	}
	sums := make([]float64, s.Dim)
	for h := range s.KVHeads {
		clear(sums)
		for i := range s.Keys {
			for d, x := range k[(h*s.Keys+i)*s.Dim:][:s.Dim] {
				sums[d] += float64(x)
			}
		}
		for d, x := range sums {
			dst[h*s.Dim+d] = number.Canonical(float32(x / float64(max(s.Keys, 1))))
		}
	}
}

// smooth returns k less its means.
func smooth(k []float32, s Sizes) []float32 {
	means := make([]float32, s.KVHeads*s.Dim)
	KeyMeans(means, k, s)
	out := make([]float32, len(k))
	for i, x := range k {
		out[i] = x - means[i/(s.Keys*s.Dim)*s.Dim+i%s.Dim]
	}
	return out
}

// rotate returns rows of dim elements times random signs and the Hadamard matrix.
func (r Recipe) rotate(x []float32, dim int) []float32 {
	size := dim & -dim
	factor := float32(1 / math.Sqrt(float64(size)))
	out := make([]float32, len(x))
	for i, v := range x {
		if random.Hash(r.Seed, 0, uint64(i%dim))&1 != 0 {
			v = -v
		}
		out[i] = v
	}
	for lo := 0; lo < len(out); lo += size {
		group := out[lo : lo+size]
		butterflies(group)
		for i := range group {
			group[i] *= factor
		}
	}
	return out
}

// butterflies multiplies a group by H, H[i][j] = (-1)^popcount(i&j): for the distance 1, 2, 4
// and so on, each pair a and b so far apart becomes a+b and a-b, rounded to float32.
func butterflies(group []float32) {
	for far := 1; far < len(group); far *= 2 {
		for lo := 0; lo < len(group); lo += 2 * far {
			for i := lo; i < lo+far; i++ {
				a, b := group[i], group[i+far]
				group[i], group[i+far] = a+b, a-b
			}
		}
	}
}
