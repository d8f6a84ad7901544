package elementary

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestBounds has all that is read and written begin, and end, where memory does.
func TestBounds(t *testing.T) {
	var pages [6][]float32
	for i := range pages {
		pages[i] = kernelstest.Pages[float32](t, 1)
	}
	kernelstest.AtLevels(t, "elementary.", func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(4, 4))
		for n := 1; n <= 70; n++ {
			for _, end := range []bool{false, true} {
				dz, u, g, s, z, du, dg := gateOperands(r, n)
				at := func(i, n int) []float32 {
					if end {
						return pages[i][len(pages[i])-n:]
					}
					return pages[i][:n]
				}
				for i, v := range [][]float32{dz, u, g, s} {
					copy(at(i, len(v)), v)
				}
				inBounds(t, fmt.Sprintf("%d elements, end %t", n, end), func() {
					SwiGLU(at(4, n), at(1, n), at(2, n), at(3, len(s)))
					requireSame(t, z, at(4, n))
					SwiGLUGrad(at(4, n), at(5, n), at(0, n), at(1, n), at(2, n), at(3, len(s)))
					requireSame(t, du, at(4, n))
					requireSame(t, dg, at(5, n))
					ExpTo(at(4, n), at(0, n), 0, 1, 1)
					Exp2To(at(4, n), at(0, n), 0, 0)
				})
			}
		}
	})
}

func requireSame(t *testing.T, want, got []float32) {
	t.Helper()
	for i := range want {
		if !same(got[i], want[i]) {
			t.Fatalf("element %d of %d: %v, want %v", i, len(want), got[i], want[i])
		}
	}
}

// inBounds calls f, in which a fault ends the test and not the process.
func inBounds(t *testing.T, note string, f func()) {
	t.Helper()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if err := recover(); err != nil {
			t.Fatalf("%s: %v", note, err)
		}
	}()
	f()
}
