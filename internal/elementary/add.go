package elementary

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/race"
)

// addFunc is Add of slices that are not empty, and of one length. It keeps no pointer.
type addFunc func(dst, a, b []float32)

// Add writes a+b to dst, element by element; a and b are as long or longer. dst may be a
// or b.
func Add(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	race.Read(a)
	race.Read(b)
	race.Write(dst)
	kernel, _ := addTo.For(cpu.Current())
	dst, a, b = kernels.NoEscapeSlice(dst), kernels.NoEscapeSlice(a), kernels.NoEscapeSlice(b)
	for lo := 0; lo < len(dst); lo += longest {
		hi := min(lo+longest, len(dst))
		kernel(dst[lo:hi], a[lo:hi], b[lo:hi])
	}
}

func addGeneric(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}
