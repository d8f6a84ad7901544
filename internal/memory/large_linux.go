package memory

import "golang.org/x/sys/unix"

// useLargePages asks for large pages for all of b that they fill; b begins at one.
func useLargePages(b []byte) {
	_ = unix.Madvise(b[:len(b)&^(largePage-1)], unix.MADV_HUGEPAGE) // a system may have none
}
