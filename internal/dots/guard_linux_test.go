package dots

import (
	"runtime/debug"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestBounds has all that is read and written begin, and end, where memory does.
func TestBounds(t *testing.T) {
	const most = 40
	sums := kernelstest.Pages[float64](t, most*Columns)
	x, panel := kernelstest.Pages[float64](t, most*most), kernelstest.Pages[float64](t, most*Columns)
	kernelstest.AtLevels(t, "dots.", func(t *testing.T, _ cpu.Level) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		for rows := Group; rows <= most; rows += Group {
			for n := 1; n <= most; n++ {
				Multiply(sums[:rows*Columns], Columns, x[:rows*n], n, panel[:n*Columns], n, rows)
				Multiply(sums[len(sums)-rows*Columns:], Columns, x[len(x)-rows*n:], n, panel[len(panel)-n*Columns:], n, rows)
			}
		}
	})
}
