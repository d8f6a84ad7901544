package deviation

import (
	"runtime/debug"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestBounds has all that is read begin, and end, where memory does.
func TestBounds(t *testing.T) {
	values, others := kernelstest.Pages[float32](t, 1000), kernelstest.Pages[float32](t, 1000)
	kernelstest.AtLevels(t, "deviation.Of", func(t *testing.T, _ cpu.Level) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		for n := 1; n < 100; n++ {
			Of(values[:n], others[:n])
			Of(values[len(values)-n:], others[len(others)-n:])
		}
	})
}
