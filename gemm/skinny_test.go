package gemm_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestFewRows has products of few rows, of codes that kernels can decode, with blocks
// that are shorter and longer than what a kernel takes at once.
func TestFewRows(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 1))
	for m := 1; m <= 5; m++ {
		for i, k := range []int{130, 1030, 8192, 8230} {
			if testing.Short() && (m+i)%3 != 1 {
				continue
			}
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
			if testing.Short() && m != 1+block%4 {
				continue
			}
			a := random(r, "a", fp8.E4M3, tensor.Block{Rows: 1, Cols: block}, kind{}, m, 9000)
			b := random(r, "b", fp8.E5M2, tensor.Block{Rows: 1, Cols: block}, kind{}, 33, 9000)
			compareLevels(t, r, a, b)
		}
	}
}

// TestFewRowsSharedScales has products of few rows with many panels, of which some share scales:
// all of them, as many as a block of rows holds, or none, in one step along K and in several.
func TestFewRowsSharedScales(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 4))
	for _, s := range []shape{
		{1, 600, 300, tile128, square128}, {2, 600, 300, tile128, square128},
		{1, 400, 300, tile128, tensor.Block{Rows: 48, Cols: 128}}, {1, 400, 300, tensor.Block{}, tensor.Block{}},
		{1, 300, 8400, tile128, square128}, {1, 300, 700, tensor.Block{}, tensor.Block{Rows: 96}},
	} {
		a := random(r, "a", fp8.E4M3, s.a, kind{}, s.m, s.k)
		compareLevels(t, r, a, random(r, "b", fp8.E4M3, s.b, kind{}, s.n, s.k))
	}
}

// TestRowsOfVectors has products whose few rows fill vectors, or nearly, of codes that are
// decoded as they lie: with blocks and columns beyond what is decoded at once, more columns
// than an area has, codes that no float16 is, and scales of each row of B.
func TestRowsOfVectors(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 3))
	for i, m := range []int{13, 16, 32} {
		for j, s := range []shape{
			{m, 150, 130, tile128, square128},
			{m, 144, 700, tile128, tile128},
			{m, 128, 4600, tensor.Block{Rows: 1, Cols: 6}, tensor.Block{Rows: 3, Cols: 6}},
			{m, 169, 1031, tensor.Block{}, tensor.Block{Rows: 1}},
			{m, 145, 600, tensor.Block{Rows: 1, Cols: 300}, tensor.Block{Rows: 2, Cols: 300}},
			{m, 25, 600, tensor.Block{Rows: 1, Cols: 300}, tensor.Block{Rows: 2, Cols: 300}},
			{m, 2060, 34, tensor.Block{Rows: 1, Cols: 32}, tensor.Block{Rows: 32, Cols: 32}},
		} {
			if testing.Short() && (i+j)%3 != 0 {
				continue
			}
			format := []fp8.Format{fp8.E4M3, fp8.E5M2, fp8.E4M3FNUZ}[(i+s.n)%3]
			a := random(r, "a", anyFormat(r), s.a, anyKind(r), s.m, s.k)
			b := random(r, "b", format, s.b, anyKind(r), s.n, s.k)
			if i%2 == 0 {
				b.Codes[r.IntN(len(b.Codes))] = format.NaNCode()
			}
			compareLevels(t, r, a, b)
		}
	}
}

// TestRowsOfVectorsAfterNaN has an odd K, whose last value is multiplied together with what
// lies behind it, where a product before had NaN.
func TestRowsOfVectorsAfterNaN(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 4))
	a := random(r, "a", fp8.E4M3, tensor.Block{}, kind{}, 16, 131)
	b := random(r, "b", fp8.E4M3, tensor.Block{}, kind{}, 130, 131)
	want := reference(a, b)
	before := random(r, "before", fp8.E4M3, tensor.Block{}, kind{}, 130, 160)
	for i := range before.Codes {
		before.Codes[i] = fp8.E4M3.NaNCode()
	}
	x := random(r, "x", fp8.E4M3, tensor.Block{}, kind{}, 16, 160)
	forLevels(t, func(t *testing.T) {
		for range 3 {
			require.NoError(t, gemm.Multiply(t.Context(), make([]float32, len(want)), x, before, gemm.Options{Workers: 1}))
			got := make([]float32, len(want))
			require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{Workers: 1}))
			require.NoError(t, differ(got, want))
		}
	})
}
