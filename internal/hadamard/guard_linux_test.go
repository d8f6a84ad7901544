package hadamard

import (
	"runtime/debug"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestBounds has all that is read and written begin, and end, where memory does.
func TestBounds(t *testing.T) {
	kernelstest.AtLevels(t, "hadamard.", func(t *testing.T, _ cpu.Level) {
		checkBounds[float32](t)
		checkBounds[uint16](t)
	})
}

func checkBounds[T Element](t *testing.T) {
	const most = 80
	from, to := kernelstest.Pages[T](t, most*Size), kernelstest.Pages[T](t, most*Size)
	f := new(Factors)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for n := 1; n <= most; n++ {
		all := n * Size
		Rows(to[:all], from[:all], f)
		Rows(to[len(to)-all:], from[len(from)-all:], f)
		Columns(to[:all], n, from[:all], n, n, f)
		Columns(to[len(to)-all:], n, from[len(from)-all:], n, n, f)
	}
}
