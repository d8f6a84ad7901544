package transpose

import (
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

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
	const most = 100
	from, to := pages(t, most*most), pages(t, most*most)
	kernelstest.AtLevels(t, "transpose.", func(t *testing.T, _ cpu.Level) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		for rows := 1; rows <= most; rows += 3 {
			for cols := 1; cols <= most; cols += 3 {
				n := rows * cols
				Matrix(to[:n], rows, from[:n], cols, rows, cols)
				Matrix(to[len(to)-n:], rows, from[len(from)-n:], cols, rows, cols)
			}
		}
	})
}
