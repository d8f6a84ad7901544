package tensor_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// blocksRecorder is a BlocksReporter that keeps what it hears, and how.
type blocksRecorder struct {
	mu sync.Mutex
	recorder
	many bool // Blocks was called
}

func (r *blocksRecorder) Block(op, name string, row, col int, scale float32, st *fp8.Stats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorder.Block(op, name, row, col, scale, st)
}

func (r *blocksRecorder) Blocks(op, name string, first, gridCols int, scales []float32, stats []fp8.Stats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.many = true
	for i := range stats {
		r.recorder.Block(op, name, (first+i)/gridCols, (first+i)%gridCols, scales[i], &stats[i])
	}
}

// sorted returns the calls by position.
func sorted(calls []blockCall) []blockCall {
	slices.SortFunc(calls, func(a, b blockCall) int { return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col)) })
	return calls
}

// TestBlocksReporter checks that it hears of each block what another Reporter hears,
// and that codes, scales and sums are the same.
func TestBlocksReporter(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	heard, n := 0, 300 // tensors by the dozen
	if testing.Short() {
		n = 60
	}
	for range n {
		rows, cols := 1+r.IntN(40), 1+r.IntN(700)
		block := []tensor.Block{{}, {Rows: 1}, {Rows: 1, Cols: 16}, {Rows: 1, Cols: 128}, {Rows: 128, Cols: 128}, {Rows: 4, Cols: 32}, {Rows: 8, Cols: 1}, {Cols: 5}}[r.IntN(8)]
		src := make([]float32, rows*cols)
		for i := range src {
			src[i] = float32(math.Ldexp(r.NormFloat64(), r.IntN(30)-15))
			if r.IntN(500) == 0 {
				src[i] = []float32{0, float32(math.Inf(1)), float32(math.NaN())}[r.IntN(3)]
			}
		}
		policy := fp8.Policy{Rounding: fp8.Rounding(r.IntN(3)), Seed: r.Uint64()}
		quantize := func(reporter tensor.Reporter, workers int) (*tensor.Tensor, fp8.Stats) {
			x, stats := &tensor.Tensor{Name: "x", Shape: []int{rows, cols}, Block: block}, fp8.Stats{}
			require.NoError(t, tensor.Quantize(t.Context(), x, src, tensor.Quantizer{
				Scale: largest(fp8.E4M3), Policy: policy,
				Options: tensor.Options{Reporter: reporter, Stats: &stats, Workers: workers},
			}))
			return x, stats
		}
		var one recorder
		var many blocksRecorder
		want, wantStats := quantize(&one, 1)
		got, gotStats := quantize(&many, 1+r.IntN(3))
		require.Equal(t, want.Codes, got.Codes)
		require.Equal(t, want.Scales, got.Scales)
		require.Equal(t, wantStats, gotStats)
		require.Equal(t, fmt.Sprint(one.nonFinite), fmt.Sprint(many.nonFinite)) // NaN is not equal to itself
		require.Equal(t, sorted(one.blocks), sorted(many.blocks), "%d x %d in blocks of %v", rows, cols, block)
		if many.many {
			heard++
		}
	}
	require.Greater(t, heard, n*2/3)
}

// TestBlocksReporterDetail checks that sums in the order of elements stay in it.
func TestBlocksReporterDetail(t *testing.T) {
	src := make([]float32, 3*300)
	for i := range src {
		src[i] = float32(i) / 7
	}
	quantize := func(reporter tensor.Reporter) fp8.Detail {
		stats := fp8.Stats{Detail: new(fp8.Detail)}
		x := &tensor.Tensor{Shape: []int{3, 300}, Block: tensor.Block{Rows: 1, Cols: 128}}
		require.NoError(t, tensor.Quantize(t.Context(), x, src, tensor.Quantizer{
			Scale: largest(fp8.E4M3), Options: tensor.Options{Reporter: reporter, Stats: &stats},
		}))
		return *stats.Detail
	}
	require.Equal(t, quantize(new(recorder)), quantize(new(blocksRecorder)))
}

// TestScaleRow asks for many scales at a time, and for each alone where one block has a NaN.
func TestScaleRow(t *testing.T) {
	nan := float32(math.NaN())
	for _, divide := range []bool{false, true} {
		for _, third := range []float32{-3, nan} {
			alone := 0
			x := &tensor.Tensor{Name: "x", Format: fp8.E4M3, Shape: []int{2, 2}, Block: tensor.Block{Rows: 1, Cols: 1}}
			require.NoError(t, tensor.Quantize(t.Context(), x, []float32{1, 2, third, 4}, tensor.Quantizer{
				Scale: func(int, float32, bool) fp8.Scale {
					alone++
					return fp8.Scale{Stored: 0.25, Multiplier: 4}
				},
				ScaleRow: func(first int, stored, factors, amax []float32) bool {
					require.Equal(t, []float32{1, 2, 3, 4}, amax)
					for i := range stored {
						stored[i], factors[i] = float32(first+i)+0.5, 2
					}
					return divide
				},
				Options: tensor.Options{Workers: 1},
			}))
			if third != third {
				require.Equal(t, 4, alone)
				require.Equal(t, []float32{0.25, 0.25, 0.25, 0.25}, x.Scales)
				continue
			}
			require.Zero(t, alone)
			require.Equal(t, []float32{0.5, 1.5, 2.5, 3.5}, x.Scales)
			for i, v := range []float32{1, 2, -3, 4} {
				if v *= 2; divide {
					v /= 4
				}
				require.Equal(t, v, fp8.E4M3.Float32(x.Codes[i]))
			}
		}
	}
}
