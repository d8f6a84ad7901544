package transpose

import (
	"runtime/debug"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestBounds has all that is read and written begin, and end, where memory does.
func TestBounds(t *testing.T) {
	const most = 100
	from, to := kernelstest.Pages[float32](t, most*most), kernelstest.Pages[float32](t, most*most)
	kernelstest.AtLevels(t, "transpose.", func(t *testing.T, _ cpu.Level) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		for rows := 1; rows <= most; rows += 3 {
			for cols := 1; cols <= most; cols += 3 {
				n := rows * cols
				Matrix(to[:n], rows, from[:n], cols, rows, cols)
				Matrix(to[len(to)-n:], rows, from[len(from)-n:], cols, rows, cols)
			}
		}
	})
}
