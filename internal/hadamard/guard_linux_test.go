package hadamard

import (
	"runtime/debug"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestBounds has all that is read and written begin, and end, where memory does.
func TestBounds(t *testing.T) {
	const most = 80
	from, to := kernelstest.Pages[float32](t, most*Size), kernelstest.Pages[float32](t, most*Size)
	f := new(Factors)
	kernelstest.AtLevels(t, "hadamard.", func(t *testing.T, _ cpu.Level) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		for n := 1; n <= most; n++ {
			all := n * Size
			Rows(to[:all], from[:all], f)
			Rows(to[len(to)-all:], from[len(from)-all:], f)
			Columns(to[:all], n, from[:all], n, n, f)
			Columns(to[len(to)-all:], n, from[len(from)-all:], n, n, f)
		}
	})
}
