package rounding

import (
	"runtime/debug"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestBounds has all that is read and written begin, and end, where memory does.
func TestBounds(t *testing.T) {
	from, to := kernelstest.Pages[float32](t, 1000), kernelstest.Pages[float32](t, 1000)
	for _, rounding := range roundings {
		kernelstest.AtLevels(t, rounding.name, func(t *testing.T, _ cpu.Level) {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			for n := 1; n < 100; n++ {
				rounding.run(to[:n], from[:n], &lattices[1], fp8.Scale{Stored: 1, Multiplier: 1}, 1, 2)
				rounding.run(to[len(to)-n:], from[len(from)-n:], &lattices[1], fp8.Scale{Stored: 1, Multiplier: 1}, 1, 2)
			}
		})
	}
}

// TestBoundsOfMagnitudes is TestBounds of what writes nothing.
func TestBoundsOfMagnitudes(t *testing.T) {
	from := kernelstest.Pages[float32](t, 1000)
	kernelstest.AtLevels(t, "rounding.Magnitudes", func(t *testing.T, _ cpu.Level) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		for n := 1; n < 100; n++ {
			Magnitudes(from[:n])
			Magnitudes(from[len(from)-n:])
		}
	})
}
