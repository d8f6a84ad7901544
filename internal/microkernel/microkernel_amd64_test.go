//go:build !purego

package microkernel

import (
	"math/rand/v2"
	"testing"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestRowOfEither tests both loops of a row at level avx2, of which a processor uses one.
func TestRowOfEither(t *testing.T) {
	defer func(was bool) { fastDenormals = was }(fastDenormals)
	kernelstest.At(t, cpu.AVX2, func(t *testing.T) {
		for _, fast := range []bool{false, true} {
			fastDenormals = fast
			testMultiply(t, rand.New(rand.NewPCG(5, 7)), &avx2, "MultiplyCodesRow", multiplyCodesRowAVX2, 1, PanelWidth, 1)
		}
	})
}
