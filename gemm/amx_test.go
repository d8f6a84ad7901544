//go:build linux && amd64 && !purego

package gemm_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/amxemu"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestAMX runs the tests of levels for level AMX: all of them with tiles even where
// these do not pay, and some as products come.
func TestAMX(t *testing.T) {
	amxemu.Test(t, func(t *testing.T) {
		before := levels
		levels = []cpu.Level{cpu.AMX}
		defer func() { levels = before }()
		t.Run("Golden", TestGolden)
		t.Run("Large", TestLarge)
		t.Run("always", func(t *testing.T) {
			defer gemm.AMXAlways()()
			for name, test := range levelTests {
				t.Run(name, test)
			}
		})
		t.Run("floats", func(t *testing.T) {
			defer gemm.AMXAlways()()
			defer gemm.AMXFloats()()
			t.Run("GoldenNarrow", TestGoldenNarrow)
			testNarrow(t)
		})
	}, "tdpbf16ps", "tdpbssd")
	kernelstest.Tested(t, "gemm.Multiply", cpu.AMX)
}

// TestManySquares has areas of ten squares below each other and several steps, in blocks
// that are longer and shorter than those.
func TestManySquares(t *testing.T) {
	amxemu.Test(t, func(t *testing.T) {
		defer force(t, cpu.AMX)()
		r := rand.New(rand.NewPCG(41, 43))
		for _, block := range []tensor.Block{{}, tile128} {
			a := random(r, "a", fp8.E4M3, block, kind{}, 300, 1100)
			b := random(r, "b", fp8.E4M3, block, kind{}, 70, 1100)
			want, got := reference(a, b), make([]float32, 300*70)
			require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{Workers: 1}))
			require.NoError(t, differ(got, want))
			w, err := gemm.Pack(b)
			require.NoError(t, err)
			require.NoError(t, gemm.Multiply(t.Context(), got, a, w, gemm.Options{Workers: 1}))
			require.NoError(t, differ(got, want))
		}
	}, "tdpbf16ps")
}

// TestWholeSquares has results of whole squares of columns, which go to C without a
// copy where nothing is added to them, in groups that begin elsewhere in C.
func TestWholeSquares(t *testing.T) {
	amxemu.Test(t, func(t *testing.T) {
		defer gemm.AMXAlways()()
		r := rand.New(rand.NewPCG(41, 42))
		operand := func(rows int) *tensor.Tensor {
			x := &tensor.Tensor{Shape: []int{rows, 96}, Block: tensor.Block{Rows: 1, Cols: 48}}
			for range rows * 96 {
				x.Codes = append(x.Codes, byte(r.IntN(0x7F)|r.IntN(2)<<7))
			}
			for range rows * 2 {
				x.Scales = append(x.Scales, float32(r.ExpFloat64()))
			}
			return x
		}
		const n = 64
		rows := []int{5, 0, 40, 3}
		a, experts := operand(48), []*tensor.Tensor{operand(n), operand(n), operand(n), operand(n)}
		bias, old := make([]float32, n), make([]float32, 48*n)
		for _, x := range [][]float32{bias, old} {
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
		}
		for _, o := range []gemm.Options{{}, {Bias: bias}, {Accumulate: true}} {
			var results [2][]float32
			for i, l := range []cpu.Level{cpu.Generic, cpu.AMX} {
				restore := force(t, l)
				results[i] = slices.Clone(old)
				require.NoError(t, gemm.GroupedRows(t.Context(), results[i], a, experts, rows, o))
				restore()
			}
			require.Equal(t, results[0], results[1])
		}
	}, "tdpbf16ps")
}
