package convert

import (
	"sync"

	"github.com/octavo-fp8/octavo/internal/cpu"
)

// Streams reports whether a destination of so many bytes is worth writing past the
// caches, with Decoding.Stream: little of it would still be there when it is read, and
// lines that are written whole need not be read first.
func Streams(bytes int) bool { return bytes >= streamFrom() }

var streamFrom = sync.OnceValue(func() int { return streamThreshold(cpu.Caches()) })

// streamThreshold is a quarter of the last cache, which others use too. Of a server's,
// of which a virtual machine may report the whole, a core has a few times its level 2.
func streamThreshold(caches []cpu.Cache) int {
	last, level2 := caches[len(caches)-1].Bytes, caches[1].Bytes
	return min(max(last/4, 2*level2), 8*level2)
}
