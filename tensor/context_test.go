package tensor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/tensor"
)

// large is more than a goroutine's worth of values without and with kernels.
var large = []int{3, 1 << 20}

// TestCancelled checks that a context that has ended stops Quantize before anything
// is written.
func TestCancelled(t *testing.T) {
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	x := &tensor.Tensor{Name: "x", Shape: []int{1}, Codes: []byte{77}, Scales: []float32{5}}
	before := snapshot(x)
	err := tensor.Quantize(ctx, x, []float32{1}, tensor.Quantizer{Scale: largest(fp8.E4M3)})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, reason)
	require.EqualError(t, err, `tensor "x": context canceled: enough`)
	err = tensor.QuantizeMatrix(ctx, x, mat.NewDense(2, 2, nil), tensor.Quantizer{Scale: largest(fp8.E4M3)})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, before, snapshot(x))
}

// TestCancelledMeanwhile cancels in the middle of a tensor, whatever its blocks,
// and checks that most of it is left undone.
func TestCancelledMeanwhile(t *testing.T) {
	src := make([]float32, large[0]*large[1])
	for _, b := range []tensor.Block{{}, {Rows: 1}, {Rows: 1, Cols: 128}, {Rows: 2, Cols: 32}, {Rows: 3}, {Cols: 1 << 19}} {
		for _, reporter := range []tensor.Reporter{nil, new(recorder)} {
			ctx, cancel := context.WithCancel(t.Context())
			var last int64
			x := &tensor.Tensor{Name: "x", Shape: large, Block: b}
			q := tensor.Quantizer{Scale: largest(fp8.E4M3), Options: tensor.Options{Workers: 1, Reporter: reporter}}
			q.Progress = progress.Func(func(_ string, done, total int64) {
				if last = done; done > total/8 {
					cancel()
				}
			})
			err := tensor.Quantize(ctx, x, src, q)
			require.ErrorIs(t, err, context.Canceled, "block %v", b)
			require.Less(t, last, int64(len(src)), "block %v", b) // of twice as many
		}
	}
}

// TestProgress checks that every element counts twice, whoever encodes it.
func TestProgress(t *testing.T) {
	src := make([]float32, large[0]*large[1])
	for _, b := range []tensor.Block{{}, {Rows: 1}, {Rows: 1, Cols: 128}, {Rows: 2, Cols: 64}, {Cols: 8}} {
		for workers := 1; workers <= 3; workers += 2 {
			for _, reporter := range []tensor.Reporter{nil, silent{}} {
				if reporter != nil && b.Cols == 8 {
					continue // too many blocks
				}
				var last int64
				calls := 0
				x := &tensor.Tensor{Shape: large, Block: b}
				require.NoError(t, tensor.Quantize(t.Context(), x, src, tensor.Quantizer{
					Scale: largest(fp8.E4M3),
					Options: tensor.Options{Workers: workers, Reporter: reporter, Op: "test", Progress: progress.Func(func(op string, done, total int64) {
						if op != "test" || total != 2*int64(len(src)) || done <= last {
							t.Errorf("%s: %d of %d after %d", op, done, total, last)
						}
						last = done
						calls++
					})},
				}))
				require.Equal(t, 2*int64(len(src)), last, "block %v", b)
				require.Greater(t, calls, 10)
			}
		}
	}
}

type silent struct{}

func (silent) Block(string, string, int, int, float32, *fp8.Stats) {}
func (silent) NonFinite(string, string, int, float64)              {}

// TestBlockIndex checks that every block is asked for once, by its index, whoever
// encodes it.
func TestBlockIndex(t *testing.T) {
	src := make([]float32, large[0]*large[1])
	for i := range src {
		src[i] = float32(i%7) - 3
	}
	for _, b := range []tensor.Block{{Rows: 1, Cols: 128}, {Rows: 2, Cols: 1000}, {Cols: 1 << 19}} {
		for _, reporter := range []tensor.Reporter{nil, silent{}} {
			x := &tensor.Tensor{Shape: large, Block: b}
			rows, cols := x.Grid()
			asked := make([]atomic.Int32, rows*cols)
			require.NoError(t, tensor.Quantize(t.Context(), x, src, tensor.Quantizer{
				Scale: func(block int, _ float32, _ bool) fp8.Scale {
					asked[block].Add(1)
					return fp8.Scale{Stored: float32(block + 1)}
				},
				Options: tensor.Options{Workers: 3, Reporter: reporter},
			}))
			for i := range asked {
				if asked[i].Load() != 1 || x.Scales[i] != float32(i+1) {
					t.Fatalf("block %d of %v: asked %d times, scale %v", i, b, asked[i].Load(), x.Scales[i])
				}
			}
		}
	}
}
