// Package memory says how much memory there is, so that a size from a file is an error
// where it cannot be had, rather than the end of the process; and asks for large pages.
package memory

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"sync"
	"unsafe"
)

// ofMachine returns the bytes of memory of this machine, or of the container that the
// process is in, swap included; where that is not known, math.MaxInt64.
var ofMachine = sync.OnceValue(func() int64 {
	if n := total(); n > 0 {
		return n
	}
	return math.MaxInt64
})

// Limit returns the bytes of memory that the process may have: those of the machine or of its
// container, swap included, or of GOMEMLIMIT where that is less; math.MaxInt64 where that is
// not known.
func Limit() int64 { return min(ofMachine(), debug.SetMemoryLimit(-1)) }

// Obey makes the runtime collect garbage before this process has more memory than there is,
// unless GOMEMLIMIT says something else: then what Check lets pass comes to its end.
func Obey() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(ofMachine())
	}
}

// Check returns an error where n elements of the given size are more bytes than [Limit] says.
// It names what they are, both numbers, and what to do instead.
func Check(n, size int64, what, instead string) error {
	limit := Limit()
	if n >= 0 && n <= min(most, limit)/size {
		return nil
	}
	need, has := "more than 8 EiB", "this machine or its container has"
	if n >= 0 && n <= math.MaxInt64/size {
		need = text(n * size)
	}
	if limit < ofMachine() {
		has = "GOMEMLIMIT allows"
	}
	return fmt.Errorf("%s does not fit in memory: it takes %s, and %s %s: %s", what, need, has, text(limit), instead)
}

// text returns a number of bytes for people.
func text(n int64) string {
	x, units := float64(n), []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for len(units) > 1 && x >= 1024 {
		x, units = x/1024, units[1:]
	}
	return fmt.Sprintf("%.4g %s", x, units[0])
}

// most is the most bytes that one slice may have. Asked for more, the runtime panics.
const most = min(math.MaxInt, int64(1)<<47)

// largePage is the size of the pages that are asked for on most machines.
const largePage = 2 << 20

// Large returns n zeros. If they take more than a large page, they begin at one and the system
// is asked for such pages: memory that is much larger than the caches is then there sooner,
// since each page is given out by itself, and read faster, since fewer addresses of pages are
// looked up.
func Large[T ~uint8 | ~uint16 | ~float32](n int) []T {
	size := int(unsafe.Sizeof(T(0)))
	if n <= largePage/size {
		return make([]T, n)
	}
	s := make([]T, n+largePage/size)
	first := (-int(uintptr(unsafe.Pointer(&s[0]))) & (largePage - 1)) / size
	s = s[first:][:n:n]
	useLargePages(unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), n*size))
	return s
}
