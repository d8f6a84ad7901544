package aligned

import (
	"runtime/debug"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestBounds has all that is read and written begin, and end, where memory does.
func TestBounds(t *testing.T) {
	const most = 70
	x, y := kernelstest.Pages[Term](t, most), kernelstest.Pages[Term](t, most*Columns)
	s := kernelstest.Pages[Sums](t, 1)
	kernelstest.AtLevels(t, "aligned.", func(t *testing.T, _ cpu.Level) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		for n := range most + 1 {
			s[0].Multiply(x[:n], y[:n*Columns], Columns, Places{}, mostBits)
			s[len(s)-1].Multiply(x[len(x)-n:], y[len(y)-n*Columns:], Columns, Places{}, mostBits)
		}
	})
}
