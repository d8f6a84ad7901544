//go:build !purego

package microkernel

import (
	"math/rand/v2"
	"testing"

	arm "golang.org/x/sys/cpu"
)

// TestRows has both kernels for a row, of which [Kernels] has the one for this processor.
func TestRows(t *testing.T) {
	t.Run("NEON", func(t *testing.T) {
		testMultiply(t, rand.New(rand.NewPCG(5, 5)), &Kernels{}, "MultiplyCodesRow", multiplyCodesRowNEON, 1, PanelWidth, 1)
	})
	t.Run("FHM", func(t *testing.T) {
		if !arm.ARM64.HasASIMDFHM {
			t.Skip("not on this processor")
		}
		testMultiply(t, rand.New(rand.NewPCG(5, 6)), &Kernels{}, "MultiplyCodesRow", multiplyCodesRowFHM, 1, PanelWidth, 1)
	})
}
