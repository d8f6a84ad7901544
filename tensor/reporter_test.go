package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

type blockCall struct {
	op, tensor string
	row, col   int
	scale      float32
	stats      fp8.Stats
}

type nonFiniteCall struct {
	op, tensor string
	index      int
	value      float64
}

// recorder is a Reporter that keeps what it hears.
type recorder struct {
	blocks    []blockCall
	nonFinite []nonFiniteCall
}

func (r *recorder) Block(op, name string, row, col int, scale float32, st *fp8.Stats) {
	r.blocks = append(r.blocks, blockCall{op, name, row, col, scale, *st})
}

func (r *recorder) NonFinite(op, name string, index int, value float64) {
	r.nonFinite = append(r.nonFinite, nonFiniteCall{op, name, index, value})
}

func TestReporter(t *testing.T) {
	inf := float32(math.Inf(1))
	src := []float32{
		1, 500, 0, 0x1p-20, 1,
		-600, 2, 0x1p-8, float32(math.Copysign(0, -1)), 3,
		5, -inf, inf, float32(math.NaN()), 4,
	}
	var r recorder
	x := &tensor.Tensor{Name: "x", Shape: []int{3, 5}, Block: tensor.Block{Rows: 2, Cols: 2}}
	require.NoError(t, tensor.Quantize(t.Context(), x, src, tensor.Quantizer{
		Scale:   func(_ int, amax float32, _ bool) fp8.Scale { return fp8.Scale{Stored: amax + 1, Multiplier: 1} },
		Options: tensor.Options{Reporter: &r},
	}))
	require.Equal(t, []blockCall{
		{"quantize", "x", 0, 0, 601, fp8.Stats{Elements: 4, Amax: 600, Smallest: 1, SaturatedPos: 1, SaturatedNeg: 1}},
		{"quantize", "x", 0, 1, 1 + 0x1p-8, fp8.Stats{Elements: 4, Amax: 0x1p-8, Smallest: 0x1p-20, Flushed: 1, Subnormal: 1, Zeros: 2}},
		{"quantize", "x", 0, 2, 4, fp8.Stats{Elements: 2, Amax: 3, Smallest: 1}},
		{"quantize", "x", 1, 0, inf, fp8.Stats{Elements: 2, Amax: 5, Smallest: 5, BecameNonFinite: 1, NegInf: 1}},
		{"quantize", "x", 1, 1, inf, fp8.Stats{Elements: 2, NaN: 1, PosInf: 1}},
		{"quantize", "x", 1, 2, 5, fp8.Stats{Elements: 1, Amax: 4, Smallest: 4}},
	}, r.blocks)
	require.Equal(t, []nonFiniteCall{{"quantize", "x", 11, math.Inf(-1)}}, r.nonFinite)
}

// TestReporterOp checks the name of the operation, for both kinds of call.
func TestReporterOp(t *testing.T) {
	var r recorder
	require.NoError(t, tensor.Quantize(t.Context(), &tensor.Tensor{Name: "y", Shape: []int{1}}, []float32{float32(math.Inf(1))},
		tensor.Quantizer{Scale: largest(fp8.E4M3), Options: tensor.Options{Reporter: &r, Op: "dispatch"}}))
	require.Equal(t, "dispatch", r.blocks[0].op)
	require.Equal(t, []nonFiniteCall{{"dispatch", "y", 0, math.Inf(1)}}, r.nonFinite)
}

// TestFirstNonFinite checks the index of the first NaN or infinity, from every
// type: one that is only reached in another block too.
func TestFirstNonFinite(t *testing.T) {
	t.Run("float32", testFirstNonFinite[float32])
	t.Run("float64", testFirstNonFinite[float64])
	t.Run("float16", testFirstNonFinite[float16.Float16])
	t.Run("bfloat16", testFirstNonFinite[fp8.BFloat16])
}

func testFirstNonFinite[T fp8.Float](t *testing.T) {
	values := make([]float64, 40)
	x := &tensor.Tensor{Name: "x", Shape: []int{5, 8}, Block: tensor.Block{Rows: 2, Cols: 3}}
	for _, v := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
		for first := range values {
			clear(values)
			for i := first; i < len(values); i += 3 {
				values[i] = v
			}
			var r recorder
			require.NoError(t, tensor.Quantize(t.Context(), x, convert[T](values), tensor.Quantizer{Scale: largest(fp8.E4M3), Options: tensor.Options{Reporter: &r}}))
			require.Len(t, r.nonFinite, 1)
			require.Equal(t, first, r.nonFinite[0].index)
			require.True(t, same(v, r.nonFinite[0].value))
		}
	}
	clear(values)
	values[7] = 60000 // finite in all types
	var r recorder
	require.NoError(t, tensor.Quantize(t.Context(), x, convert[T](values), tensor.Quantizer{Scale: largest(fp8.E4M3), Options: tensor.Options{Reporter: &r}}))
	require.Empty(t, r.nonFinite)
}

// TestStats checks that the total is what one pass over all values gives, what
// the reports of the blocks add up to, and is added to what was there.
func TestStats(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	s := fp8.Scale{Stored: 0x1p-5, Multiplier: 32}
	for _, shape := range shapes {
		for _, b := range blocks {
			rows, cols := matrixOf(shape)
			src := convert[float32](mixed(rnd, rows*cols, true))
			want := fp8.Stats{Detail: new(fp8.Detail)}
			fp8.EncodeScaled(make([]byte, len(src)), src, fp8.E4M3, fp8.Policy{}, s, 0, &want)
			for _, detail := range []bool{false, true} {
				var r recorder
				got, quiet := fp8.Stats{Elements: 5}, fp8.Stats{Elements: 5}
				if detail {
					got.Detail, quiet.Detail = new(fp8.Detail), new(fp8.Detail)
				}
				x := &tensor.Tensor{Shape: shape, Block: b}
				q := tensor.Quantizer{Scale: func(int, float32, bool) fp8.Scale { return s }, Options: tensor.Options{Reporter: &r, Stats: &got}}
				require.NoError(t, tensor.Quantize(t.Context(), x, src, q))
				q.Reporter, q.Stats = nil, &quiet
				require.NoError(t, tensor.Quantize(t.Context(), x, src, q))
				require.Equal(t, got, quiet)

				gridRows, gridCols := gridOf(b, rows, cols)
				require.Len(t, r.blocks, gridRows*gridCols)
				merged := fp8.Stats{Elements: 5}
				for _, c := range r.blocks {
					require.Nil(t, c.stats.Detail)
					merged.Merge(&c.stats)
				}
				sum := got
				sum.Detail = nil
				require.Equal(t, merged, sum)
				sum.Elements -= 5
				all := want
				all.Detail = nil
				require.Equal(t, all, sum)
				if detail {
					require.Equal(t, want.Detail.Exponents, got.Detail.Exponents)
					require.InEpsilon(t, 1+want.Detail.SquaredSum, 1+got.Detail.SquaredSum, 1e-12)
					require.InEpsilon(t, 1+want.Detail.SquaredError, 1+got.Detail.SquaredError, 1e-12)
				}
			}
		}
	}
}
