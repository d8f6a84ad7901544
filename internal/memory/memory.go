// Package memory says how much memory there is, so that a size from a file is an error
// where it cannot be had, rather than the end of the process; and asks for large pages.
package memory

import (
	"math"
	"sync"
)

// Total returns the bytes of memory of this machine, or of the container that the
// process is in, swap included; where that is not known, math.MaxInt64.
var Total = sync.OnceValue(func() int64 {
	if n := total(); n > 0 {
		return n
	}
	return math.MaxInt64
})

// most is the most bytes that one slice may have. Asked for more, the runtime panics.
const most = min(math.MaxInt, int64(1)<<47)

// Fits reports whether n elements of the given size could ever be in memory.
func Fits(n, size int64) bool {
	return n >= 0 && n <= min(most, Total())/size
}

// UseLargePages asks the system for large pages for b, which must not have been written to
// yet: memory that is much larger than the caches is then read faster, since fewer addresses
// of pages are looked up. Where there are none it does nothing.
func UseLargePages(b []byte) { useLargePages(b) }
