package aligned

import (
	"runtime/debug"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestBounds has all that is read begin, and end, where memory does.
func TestBounds(t *testing.T) {
	const most = 70
	x, y := kernelstest.Pages[Term](t, most), kernelstest.Pages[Term](t, most)
	kernelstest.AtLevels(t, "aligned.", func(t *testing.T, _ cpu.Level) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		for n := range most + 1 {
			Sum(x[:n], y[:n], Places{}, 31)
			Sum(x[len(x)-n:], y[len(y)-n:], Places{}, 31)
		}
	})
}
