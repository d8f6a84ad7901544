//go:build !race

package canonical

import (
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestMultiplyAllocatesNothing: the second time. The race detector has pools lose what
// they keep.
func TestMultiplyAllocatesNothing(t *testing.T) {
	const n = 70
	square := Dense(make([]float32, n*n), n)
	c := Dense(make([]float32, n*n), n)
	kernelstest.AtLevels(t, multiply.Name(), func(t *testing.T, _ cpu.Level) {
		for _, a := range []Matrix{square, square.T()} {
			for _, b := range []Matrix{square, square.T()} {
				if n := testing.AllocsPerRun(10, func() { Multiply(c, a, b, n, n, n, 1) }); n > 0 {
					t.Errorf("transposed %v and %v: %v allocations", a.Transposed, b.Transposed, n)
				}
			}
		}
	})
}
