package elementary

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// page returns values before and after which there is no memory.
func page(t *testing.T) []float32 {
	t.Helper()
	size := syscall.Getpagesize()
	memory, err := syscall.Mmap(-1, 0, 3*size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(memory)) })
	require.NoError(t, syscall.Mprotect(memory[:size], syscall.PROT_NONE))
	require.NoError(t, syscall.Mprotect(memory[2*size:], syscall.PROT_NONE))
	return unsafe.Slice((*float32)(unsafe.Pointer(&memory[size])), size/4)
}

// TestBounds has all that is read and written begin, and end, where memory does.
func TestBounds(t *testing.T) {
	var pages [6][]float32
	for i := range pages {
		pages[i] = page(t)
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
