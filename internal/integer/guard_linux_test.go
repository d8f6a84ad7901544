package integer

import (
	"testing"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// guarded returns n values that end where memory does.
func guarded[T any](t *testing.T, n int) []T {
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	pages := kernelstest.Pages[byte](t, max(size, 1))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&pages[len(pages)-size])), n)
}

// guardedBefore returns n values that begin where memory does.
func guardedBefore[T any](t *testing.T, n int) []T {
	return kernelstest.Pages[T](t, n)[:n]
}
