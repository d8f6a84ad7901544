//go:build !race

package optim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
)

// TestStepDoesNotAllocate: the second time. The race detector has pools lose what they keep.
func TestStepDoesNotAllocate(t *testing.T) {
	params := []*nn.Param{zeros("a", 100, 300), zeros("b", 1, 7)}
	for _, p := range params {
		copy(p.Grad, randoms(1, len(p.Grad)))
	}
	for _, format := range MomentFormats() {
		for _, workers := range []int{1, 3} {
			o := AdamW{Moments: Moments{Format: format, Stochastic: workers == 1}, Workers: workers, Clip: 1}
			step := func() {
				if _, err := o.Step(t.Context(), params, 1e-3); err != nil {
					t.Fatal(err)
				}
			}
			step()
			require.Zero(t, testing.AllocsPerRun(5, step), "%v, %d workers", format, workers)
		}
	}
}
