package gemm_test

import (
	"math/rand/v2"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestWithoutFeatures compares products of formats that integer units multiply at levels
// whose processors lack what others of the level have: VNNI, AVX-VNNI, AMX INT8, SDOT.
func TestWithoutFeatures(t *testing.T) {
	for _, features := range [][]cpu.Feature{{cpu.VNNI}, {cpu.VNNI, cpu.AVXVNNI, cpu.AMXInt8, cpu.DotProd}} {
		defer cpu.Without(features...)()
		t.Run("GoldenNarrow", TestGoldenNarrow)
		r := testNarrow(t)
		// Only the largest codes, in blocks as long as sums in 16 bits would overflow in.
		for format, block := range map[fp8.Format]int{fp8.E2M1: 448, fp8.E2M3: 16} {
			a := random(r, "a", format, tensor.Block{Rows: 1, Cols: block}, kind{}, 17, 2*block)
			b := random(r, "b", format, tensor.Block{Rows: 1, Cols: block}, kind{}, 32, 2*block)
			for _, x := range []*tensor.Tensor{a, b} {
				for i := range x.Codes {
					x.Codes[i] = format.MaxCode()
				}
			}
			compareLevels(t, r, a, b)
		}
	}
}

// testNarrow compares products of formats that integer units multiply, and of others of
// fewer than 8 bits.
func testNarrow(t *testing.T) *rand.Rand {
	r := rand.New(rand.NewPCG(16, 5))
	formats := []fp8.Format{fp8.E2M1, fp8.E2M3, fp8.MXINT8, fp8.E2M1, fp8.E3M2}
	tries := trials(32)
	if testing.Short() {
		tries = trials(12)
	}
	for range tries {
		block := tensor.Block{Rows: 1, Cols: pick(r, []int{8, 16, 24, 32, 32, 64, 128, 1000})}
		m, n, k := pick(r, []int{1, 5, 8, 17, 50}), pick(r, []int{1, 31, 32, 70}), pick(r, []int{16, 64, 100, 300})
		a := random(r, "a", formats[r.IntN(5)], block, anyKind(r), m, k)
		b := random(r, "b", formats[r.IntN(5)], block, anyKind(r), n, k)
		compareLevels(t, r, a, b)
	}
	return r
}
