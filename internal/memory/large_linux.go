package memory

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// largePage is the size of the pages that are asked for on most machines.
const largePage = 2 << 20

func useLargePages(b []byte) {
	if len(b) < 2*largePage {
		return
	}
	first := -int(uintptr(unsafe.Pointer(&b[0]))) & (largePage - 1)
	whole := (len(b) - first) &^ (largePage - 1)
	_ = unix.Madvise(b[first:][:whole], unix.MADV_HUGEPAGE) // a system may have none
}
