package fouroversix

import (
	"runtime/debug"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestBounds has all that is read and written begin, and end, where memory does.
func TestBounds(t *testing.T) {
	const most, stride = 20, 24
	src := kernelstest.Pages[float32](t, most*stride)
	losses, scales := kernelstest.Pages[Losses](t, most), kernelstest.Pages[Scales](t, most)
	lastLosses, lastScales := losses[len(losses)-most:], scales[len(scales)-most:]
	kernelstest.AtLevels(t, "fouroversix.Rows", func(t *testing.T, _ cpu.Level) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		for n := 1; n <= most; n++ {
			for _, width := range []int{1, Size - 1, Size} {
				end := (n-1)*stride + width
				last := src[len(src)-end:]
				Rows(losses[:n], src[:end], stride, width, scales[:n], &Error{})
				Rows(lastLosses[most-n:], last, stride, width, lastScales[most-n:], &Error{})
				Rows(losses[:n], last, stride, width, lastScales[most-1:], &Error{})
			}
		}
	})
}
