package gemm_test

import (
	"math/rand/v2"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestFewRows has products of few rows, of codes that kernels can decode, with blocks
// that are shorter and longer than what a kernel takes at once.
func TestFewRows(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 1))
	for m := 1; m <= 5; m++ {
		for i, k := range []int{130, 1030, 8192, 8230} {
			for _, block := range []tensor.Block{tile128, {Rows: 1, Cols: 1026}, {}} {
				format := []fp8.Format{fp8.E4M3, fp8.E5M2, fp8.E4M3FNUZ}[(m+i)%3]
				a := random(r, "a", format, block, kind{}, m, k)
				b := random(r, "b", format, block, kind{}, 33+r.IntN(40), k)
				if i == 1 { // and one piece that kernels cannot decode
					b.Codes[r.IntN(len(b.Codes))] = format.NaNCode()
				}
				compareLevels(t, r, a, b)
			}
		}
	}
}

// TestFewRowsDeep has products of few rows and a long K, in blocks of which more fit into
// what is decoded at once than into whole pieces that are multiplied at once.
func TestFewRowsDeep(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 2))
	for _, block := range []int{100, 6, 208} {
		for m := 1; m <= 4; m++ {
			a := random(r, "a", fp8.E4M3, tensor.Block{Rows: 1, Cols: block}, kind{}, m, 9000)
			b := random(r, "b", fp8.E5M2, tensor.Block{Rows: 1, Cols: block}, kind{}, 33, 9000)
			compareLevels(t, r, a, b)
		}
	}
}
