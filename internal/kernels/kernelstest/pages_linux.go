package kernelstest

import (
	"syscall"
	"testing"
	"unsafe"
)

// Pages returns whole pages of at least n values, before and after which there is no
// memory. T has no pointers, and a size that is a power of two.
func Pages[T any](t *testing.T, n int) []T {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var zero T
	page, size := syscall.Getpagesize(), int(unsafe.Sizeof(zero))
	whole := (n*size + page - 1) / page * page
	memory, err := syscall.Mmap(-1, 0, whole+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	must(err)
	t.Cleanup(func() { must(syscall.Munmap(memory)) })
	must(syscall.Mprotect(memory[:page], syscall.PROT_NONE))
	must(syscall.Mprotect(memory[page+whole:], syscall.PROT_NONE))
	return unsafe.Slice((*T)(unsafe.Pointer(&memory[page])), whole/size)
}
