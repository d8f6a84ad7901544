//go:build !purego

package deviation

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var add = kernels.New("deviation.Of",
	kernels.At[addFunc](cpu.Generic, addGeneric),
	kernels.At(cpu.AVX2, whole(addAVX2)),
	kernels.At(cpu.AVX512, whole(addAVX512)))

// whole gives a kernel whole vectors, and the rest to the loop in Go.
func whole(kernel func(values, others *float32, n int, s *sums)) addFunc {
	return func(values, others []float32, s *sums) {
		n := len(values) &^ (lanes - 1)
		if n > 0 {
			kernel(&values[0], &others[0], n, s)
		}
		addGeneric(values[n:], others[n:], s)
	}
}

//go:noescape
func addAVX2(values, others *float32, n int, s *sums)

//go:noescape
func addAVX512(values, others *float32, n int, s *sums)
