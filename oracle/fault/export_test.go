package fault

import (
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/tensor"
)

// NamesShipped returns the names of the faults of [Shipped], by number.
func NamesShipped() (names []string) {
	for _, s := range shipped {
		names = append(names, s.name)
	}
	return names
}

// Shipped makes a product of m x n elements whose kernel has a fault that has shipped, and
// the words that name it.
func Shipped(number int, r *rand.Rand, m, n, k int) (a, b *tensor.Tensor, got []float32, words []string) {
	s := &shipped[number]
	m = m / s.tall * s.tall
	a, b = shippedOperand(r, "a", m, k, s.block, s.format, s.scales), shippedOperand(r, "b", n, k, s.block, s.format, s.scales)
	wrong := kernelOf(a, b)
	words = s.make(r, wrong, a, b)
	return a, b, wrong.product(), words
}
