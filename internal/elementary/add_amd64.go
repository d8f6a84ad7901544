//go:build !purego

package elementary

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var addTo = kernels.New("elementary.Add", kernels.At[addFunc](cpu.Generic, addGeneric),
	kernels.At[addFunc](cpu.AVX2, func(dst, a, b []float32) {
		n := len(dst) &^ 15
		if n > 0 {
			addAVX2(&dst[0], &a[0], &b[0], n)
		}
		addGeneric(dst[n:], a[n:], b[n:])
	}))

// addAVX2 is for a multiple of 16 elements.
//
//go:noescape
func addAVX2(dst, a, b *float32, n int)
