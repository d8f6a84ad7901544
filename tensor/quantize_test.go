package tensor_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/tensor"
)

func TestQuantize(t *testing.T) {
	t.Run("float32", testQuantize[float32])
	t.Run("float64", testQuantize[float64])
	t.Run("float16", testQuantize[float16.Float16])
	t.Run("bfloat16", testQuantize[fp8.BFloat16])
}

// testQuantize compares Quantize with its definition, element by element.
func testQuantize[T fp8.Float](t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range fp8.Formats() {
		for _, shape := range shapes {
			for _, b := range blocks {
				rows, cols := matrixOf(shape)
				if testing.Short() && rows*cols > 1000 && f != fp8.E4M3 {
					continue
				}
				src := convert[T](mixed(r, rows*cols, r.IntN(2) == 0))
				policy := fp8.Policy{Overflow: fp8.Overflow(r.IntN(2)), Inf: fp8.Inf(r.IntN(2)), NaN: fp8.NaNCanonical}
				x := &tensor.Tensor{Name: "x", Format: f, Shape: shape, Block: b}
				err := tensor.Quantize(t.Context(), x, src, tensor.Quantizer{Scale: largest(f), Policy: policy})
				require.NoError(t, err)
				if err := compareQuantized(x, src, largest(f), policy); err != nil {
					t.Fatalf("%v, shape %v, block %v, %+v: %v", f, shape, b, policy, err)
				}
			}
		}
	}
}

func compareQuantized[T fp8.Float](x *tensor.Tensor, src []T, scale tensor.ScaleFunc, p fp8.Policy) error {
	if err := x.Check(); err != nil {
		return err
	}
	rows, cols := matrixOf(x.Shape)
	gridRows, gridCols := gridOf(x.Block, rows, cols)
	if len(x.Codes) != rows*cols || len(x.Scales) != gridRows*gridCols {
		return fmt.Errorf("%d codes, %d scales, want %d and %dx%d", len(x.Codes), len(x.Scales), rows*cols, gridRows, gridCols)
	}
	amax, nan := make([]float32, len(x.Scales)), make([]bool, len(x.Scales))
	at := func(i, j int) int {
		row, col := blockOf(x.Block, i, j)
		return row*gridCols + col
	}
	for k, v := range src {
		v, b := math.Abs(wide(v)), at(k/cols, k%cols)
		nan[b] = nan[b] || v != v
		if v == v && float32(v) > amax[b] {
			amax[b] = float32(v)
		}
	}
	for k, v := range src {
		b := at(k/cols, k%cols)
		s := scale(b, amax[b], nan[b])
		stored := s.Stored
		if s == (fp8.Scale{}) {
			stored = 1
		}
		if x.Scales[b] != stored {
			return fmt.Errorf("scale %d is %v, want %v for amax %v", b, x.Scales[b], stored, amax[b])
		}
		if want := encodeByDefinition(v, x.Format, p, s); x.Codes[k] != want {
			return fmt.Errorf("code %d of %v is %02x, want %02x", k, wide(v), x.Codes[k], want)
		}
	}
	return nil
}

// encodeByDefinition scales in float32, or in float64 for float64, and encodes.
func encodeByDefinition[T fp8.Float](x T, f fp8.Format, p fp8.Policy, s fp8.Scale) byte {
	_, isFloat64 := any(x).(float64)
	v := wide(x)
	switch {
	case s == fp8.Scale{}:
	case s.Multiplier == 0 && isFloat64:
		v /= float64(s.Stored)
	case s.Multiplier == 0:
		v = float64(float32(v) / s.Stored)
	case isFloat64:
		v *= float64(s.Multiplier)
	default:
		v = float64(float32(v) * s.Multiplier)
	}
	if math.IsInf(v, 0) && !math.IsInf(wide(x), 0) {
		v = math.Copysign(math.MaxFloat32, v)
	}
	return fp8.EncodeOne(v, f, p)
}

// TestScaleFuncArguments checks what a ScaleFunc is asked, and in which order.
func TestScaleFuncArguments(t *testing.T) {
	inf, nan := float32(math.Inf(-1)), float32(math.NaN())
	src := []float32{
		1, -2, 3, nan, 7,
		-4, 0, 2, 1, -8,
		inf, 1, nan, nan, 0,
	}
	type question struct {
		block int
		amax  float32
		nan   bool
	}
	var asked []question
	x := &tensor.Tensor{Shape: []int{3, 5}, Block: tensor.Block{Rows: 2, Cols: 2}}
	err := tensor.Quantize(t.Context(), x, src, tensor.Quantizer{Scale: func(block int, amax float32, nan bool) fp8.Scale {
		asked = append(asked, question{block, amax, nan})
		return fp8.Scale{Stored: float32(len(asked)), Multiplier: 1}
	}})
	require.NoError(t, err)
	require.Equal(t, []question{{0, 4, false}, {1, 3, true}, {2, 8, false}, {3, -inf, false}, {4, 0, true}, {5, 0, false}}, asked)
	require.Equal(t, []float32{1, 2, 3, 4, 5, 6}, x.Scales)
}

// TestStochasticIndex checks that however an array is cut into blocks and
// shared out among workers, the random bits of an element are those of its
// place in the array.
func TestStochasticIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	policy := fp8.Policy{Rounding: fp8.Stochastic, Seed: 42}
	s := fp8.Scale{Stored: 0.3, Multiplier: 1 / float32(0.3)}
	for _, shape := range shapes {
		rows, cols := matrixOf(shape)
		src := convert[float32](mixed(r, rows*cols, false))
		want := make([]byte, len(src))
		fp8.EncodeScaled(want, src, fp8.E5M2, policy, s, 0, nil)
		for _, b := range blocks {
			for workers := range 4 {
				x := &tensor.Tensor{Format: fp8.E5M2, Shape: shape, Block: b}
				require.NoError(t, tensor.Quantize(t.Context(), x, src, tensor.Quantizer{
					Scale:   func(int, float32, bool) fp8.Scale { return s },
					Policy:  policy,
					Options: tensor.Options{Workers: workers},
				}))
				require.True(t, bytes.Equal(want, x.Codes), "shape %v, block %v", shape, b)
			}
		}
	}
}

// TestQuantizeWorkers checks that the number of goroutines changes nothing, with
// tensors large enough to be shared: less so without kernels.
func TestQuantizeWorkers(t *testing.T) {
	type tensors struct {
		level cpu.Level
		shape []int
	}
	large := []tensors{{cpu.Generic, []int{700, 131}}, {cpu.Generic, []int{91_703}}}
	if highest := cpu.Current(); highest != cpu.Generic && !testing.Short() {
		large = append(large, tensors{highest, []int{3300, 1000}}, tensors{highest, []int{1<<20 + 13}})
	}
	for _, each := range large {
		level, shape := each.level, each.shape
		restore, err := cpu.Force(level)
		require.NoError(t, err)
		defer restore()
		rows, cols := matrixOf(shape)
		src := convert[float32](mixed(rand.New(rand.NewPCG(5, 6)), rows*cols, true))
		for _, b := range []tensor.Block{{}, {Rows: 1}, {Rows: 1, Cols: 128}, {Rows: 128, Cols: 128}, {Rows: 100, Cols: 1}, {Rows: 5, Cols: 100}, {Cols: 128}, {Rows: 1700}, {Rows: 3000, Cols: 1}} {
			policy := fp8.Policy{Rounding: fp8.Rounding(b.Rows % 3), Seed: 9}
			var want tensor.Tensor
			var total fp8.Stats
			for workers := range 4 {
				x := &tensor.Tensor{Shape: shape, Block: b}
				var st fp8.Stats
				require.NoError(t, tensor.Quantize(t.Context(), x, src, tensor.Quantizer{
					Scale: largest(fp8.E4M3), Policy: policy,
					Options: tensor.Options{Stats: &st, Workers: workers},
				}))
				if workers == 0 {
					want, total = *x, st
				}
				require.True(t, bytes.Equal(want.Codes, x.Codes), "level %v, shape %v, block %v, %d workers", level, shape, b, workers)
				require.Equal(t, want.Scales, x.Scales)
				require.Equal(t, total, st)
			}
		}
	}
}

// TestFill checks that rows which Fill says are ready are encoded then, others afterwards, and
// all of them where more has to be known first.
func TestFill(t *testing.T) {
	const rows, cols = 40, 96
	values := make([]float32, rows*cols)
	for i := range values {
		values[i] = float32(i%257) - 128
	}
	scale := func(_ int, amax float32, _ bool) fp8.Scale { return fp8.Scale{Stored: amax, Multiplier: 1 / amax} }
	for _, block := range []tensor.Block{{Rows: 1, Cols: 32}, {Rows: 1, Cols: 33}, {Rows: 8, Cols: 32}, {}} {
		want := &tensor.Tensor{Shape: []int{rows, cols}, Block: block}
		var wantStats, stats fp8.Stats
		require.NoError(t, tensor.Quantize(t.Context(), want, values, tensor.Quantizer{Scale: scale, Options: tensor.Options{Stats: &wantStats}}))
		got, src := &tensor.Tensor{Shape: []int{rows, cols}, Block: block}, make([]float32, rows*cols)
		q := tensor.Quantizer{Scale: scale, Options: tensor.Options{Stats: &stats}}
		q.Fill = func(ready func(lo, hi int)) error {
			copy(src, values)
			require.NotNil(t, ready)
			if block.Rows == 0 {
				return nil
			}
			for _, lo := range []int{16, 0, 8} { // of 24, in any order
				ready(lo, lo+8)
				clear(src[lo*cols : (lo+8)*cols]) // nobody reads it again
			}
			return nil
		}
		require.NoError(t, tensor.Quantize(t.Context(), got, src, q))
		require.Equal(t, want, got)
		require.Equal(t, wantStats, stats)

		q.Levels = func(int, int, []float32) (tensor.Outer, error) { return tensor.Outer{}, nil }
		q.Fill = func(ready func(lo, hi int)) error {
			require.Nil(t, ready)
			copy(src, values)
			return nil
		}
		require.NoError(t, tensor.Quantize(t.Context(), got, src, q))
		require.Equal(t, want.Codes, got.Codes)
		q.Fill = func(func(lo, hi int)) error { return context.Canceled }
		require.ErrorIs(t, tensor.Quantize(t.Context(), got, src, q), context.Canceled)
	}
}

// TestFillOfSharedBlocks checks that no rows are ready where workers share a block.
func TestFillOfSharedBlocks(t *testing.T) {
	x := &tensor.Tensor{Shape: []int{2048, 512}, Block: tensor.Block{Rows: 1024}}
	q := tensor.Quantizer{Scale: func(int, float32, bool) fp8.Scale { return fp8.Scale{} }, Options: tensor.Options{Workers: 2}}
	q.Fill = func(ready func(lo, hi int)) error {
		require.Nil(t, ready)
		return nil
	}
	require.NoError(t, tensor.Quantize(t.Context(), x, make([]float32, 2048*512), q))
}

// TestLevelsOfRows checks that outer scales that follow from their own rows are asked for those
// rows, all of them and each once, with the amaxes of their blocks, and become what they are
// where all rows are asked for at once.
func TestLevelsOfRows(t *testing.T) {
	restore, err := cpu.Force(cpu.Generic) // whose workers share small tensors
	require.NoError(t, err)
	defer restore()
	const rows, cols = 401, 330
	src := convert[float32](mixed(rand.New(rand.NewPCG(7, 8)), rows*cols, true))
	for _, b := range []tensor.Block{{Rows: 1, Cols: 16}, {Rows: 1, Cols: 33}, {Rows: 4, Cols: 10}, {Rows: 2}} {
		amax := make(map[int]float32) // by definition, NaN where there is one
		for k, x := range src {
			row, col := blockOf(b, k/cols, k%cols)
			_, gridCols := gridOf(b, rows, cols)
			amax[row*gridCols+col] = max(amax[row*gridCols+col], float32(math.Abs(float64(x))))
		}
		for _, under := range []int{4, 12} {
			quantize := func(levelRows, workers int) (x *tensor.Tensor, st fp8.Stats, asked []int) {
				_, gridCols := gridOf(b, rows, cols)
				outer, asked := make([]float32, (rows+under-1)/under), make([]int, rows)
				level := func(block int) float32 { return outer[block/gridCols*b.Rows/under] }
				x = &tensor.Tensor{Shape: []int{rows, cols}, Block: b}
				require.NoError(t, tensor.Quantize(t.Context(), x, src, tensor.Quantizer{
					Scale: func(block int, a float32, _ bool) fp8.Scale {
						return fp8.Scale{Stored: a, Multiplier: 1 / (a * level(block))}
					},
					Levels: func(lo, hi int, got []float32) (tensor.Outer, error) {
						for i := lo; i < hi; i++ {
							asked[i]++
						}
						first := lo / b.Rows * gridCols
						for k, a := range got {
							if want := amax[first+k]; a != want && (a == a || want == want) {
								return tensor.Outer{}, fmt.Errorf("amax of block %d: %v, want %v", first+k, a, want)
							}
							if g := (first + k) / gridCols * b.Rows / under; a == a {
								outer[g] = max(outer[g], a)
							}
						}
						return tensor.Outer{Scales: outer[lo/under : (hi+under-1)/under], Rows: under, Divide: true}, nil
					},
					LevelRows: levelRows,
					Options:   tensor.Options{Stats: &st, Workers: workers},
				}))
				return x, st, asked
			}
			want, wantStats, _ := quantize(0, 1)
			for workers := 1; workers <= 3; workers++ {
				x, st, asked := quantize(under, workers)
				require.Equal(t, want, x, "block %v, %d rows, %d workers", b, under, workers)
				require.Equal(t, wantStats, st)
				for i, n := range asked {
					require.Equal(t, 1, n, "row %d", i)
				}
			}
		}
	}
}

// TestLevelsAreThose: an error of Levels, and one scale too few, end Quantize.
func TestLevelsAreThose(t *testing.T) {
	for _, levels := range []func(lo, hi int, amax []float32) (tensor.Outer, error){
		func(lo, hi int, _ []float32) (tensor.Outer, error) {
			require.Less(t, hi-lo, 1000) // not all in one call
			return tensor.Outer{Scales: make([]float32, hi-lo-1), Rows: 1}, tensor.ErrShape
		},
		func(lo, hi int, _ []float32) (tensor.Outer, error) {
			return tensor.Outer{Scales: make([]float32, hi-lo-1), Rows: 1}, nil
		},
	} {
		x := &tensor.Tensor{Shape: []int{1000, 100}, Block: tensor.Block{Rows: 1, Cols: 10}}
		q := tensor.Quantizer{Scale: largest(fp8.E4M3), Levels: levels, LevelRows: 1}
		require.ErrorIs(t, tensor.Quantize(t.Context(), x, make([]float32, 100_000), q), tensor.ErrShape)
		q.LevelRows = -1
		require.ErrorContains(t, tensor.Quantize(t.Context(), x, make([]float32, 100_000), q), "-1 rows")
	}
}
