package microkernel

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// guarded returns n values that end where memory does.
func guarded[T any](t *testing.T, n int) []T {
	t.Helper()
	var zero T
	page, size := syscall.Getpagesize(), n*int(unsafe.Sizeof(zero))
	room := (size + page - 1) / page * page
	memory, err := syscall.Mmap(-1, 0, room+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(memory)) })
	require.NoError(t, syscall.Mprotect(memory[room:], syscall.PROT_NONE))
	return unsafe.Slice((*T)(unsafe.Pointer(&memory[room-size])), n)
}
