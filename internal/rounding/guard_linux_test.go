package rounding

import (
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// pages returns memory before and after which there is none.
func pages(t *testing.T, n int) []float32 {
	t.Helper()
	size := syscall.Getpagesize()
	whole := (4*n + size - 1) / size * size
	memory, err := syscall.Mmap(-1, 0, whole+2*size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(memory)) })
	require.NoError(t, syscall.Mprotect(memory[:size], syscall.PROT_NONE))
	require.NoError(t, syscall.Mprotect(memory[size+whole:], syscall.PROT_NONE))
	return unsafe.Slice((*float32)(unsafe.Pointer(&memory[size])), whole/4)
}

// TestBounds has all that is read and written begin, and end, where memory does.
func TestBounds(t *testing.T) {
	from, to := pages(t, 1000), pages(t, 1000)
	for _, rounding := range roundings {
		kernelstest.AtLevels(t, rounding.name, func(t *testing.T, _ cpu.Level) {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			for n := 1; n < 100; n++ {
				rounding.run(to[:n], from[:n], &lattices[1], fp8.Scale{Stored: 1, Multiplier: 1}, 1, 2)
				rounding.run(to[len(to)-n:], from[len(from)-n:], &lattices[1], fp8.Scale{Stored: 1, Multiplier: 1}, 1, 2)
			}
		})
	}
}
