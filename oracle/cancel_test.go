package oracle

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/tensor"
)

// plain returns an operand of nothing but ones.
func plain(name string, rows, k int) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, Format: fp8.E4M3, Shape: []int{rows, k}, Codes: make([]byte, rows*k), Scales: []float32{1}}
	one := fp8.EncodeOne(float32(1), fp8.E4M3, fp8.Policy{})
	for i := range t.Codes {
		t.Codes[i] = one
	}
	return t
}

// long are calls that take from some seconds to minutes. Each hears its context and
// its Progress.
func long() map[string]func(ctx context.Context, p progress.Reporter) error {
	const size, k = 2048, 4096
	a := plain("a", size, k)
	c, bound := make([]float32, size*size), make([]float64, size*size)
	q := &tensor.Tensor{Name: "q", Format: fp8.E2M1, Shape: []int{size, k}, Block: tensor.Block{Rows: 1, Cols: 16},
		ScaleFormat: tensor.UE4M3Scales, Codes: make([]byte, size*k), Scales: make([]float32, size*k/16)}
	o := func(p progress.Reporter) Options { return Options{Progress: p} }
	return map[string]func(ctx context.Context, p progress.Reporter) error{
		"exact": func(ctx context.Context, p progress.Reporter) error { return Exact(ctx, c, a, a, o(p)) },
		"predict": func(ctx context.Context, p progress.Reporter) error {
			return Predict(ctx, c, bound, a, a, Kernel{Model: HopperWGMMA()}, o(p))
		},
		"predict nvfp4": func(ctx context.Context, p progress.Reporter) error {
			return Predict(ctx, c, bound, q, q, Kernel{Model: BlackwellNVFP4()}, o(p))
		},
		"bound": func(ctx context.Context, p progress.Reporter) error {
			return Bound[float32](ctx, bound, nil, a, a, Accumulation{}, o(p))
		},
		"partials": func(ctx context.Context, p progress.Reporter) error {
			return Partials(ctx, make([]uint64, size*size), a, a, 0, o(p))
		},
		"compare": func(ctx context.Context, p progress.Reporter) error {
			_, err := Compare(ctx, c, c, bound, CompareOptions{Rows: size, Cols: size, Progress: p})
			return err
		},
	}
}

var errEnough = errors.New("enough")

// TestCancel cancels long products at their first sign of progress, after a half
// percent. They must return before they report again, but for a worker each that was
// about to.
func TestCancel(t *testing.T) {
	for name, call := range long() {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var reports atomic.Int64
			err := call(ctx, progress.Func(func(op string, done, total int64) {
				if reports.Add(1) == 1 && (done == 0 || done > total/10 || !strings.HasPrefix(name, op)) {
					t.Errorf("%s: %d of %d", op, done, total)
				}
				cancel(errEnough)
			}))
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, errEnough)
			require.ErrorContains(t, err, "oracle: ")
			require.LessOrEqual(t, reports.Load(), int64(1+runtime.GOMAXPROCS(0)), "it went on")
		})
	}
}

// TestCancelBefore: nothing is written where the context has ended before.
func TestCancelBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := plain("a", 40, 100)
	c, bound := make([]float32, 1600), make([]float64, 1600)
	for i := range c {
		c[i], bound[i] = -1, -1
	}
	require.ErrorIs(t, Exact(ctx, c, a, a, Options{}), context.Canceled)
	require.ErrorIs(t, Predict(ctx, c, bound, a, a, Kernel{Model: AdaMMA()}, Options{}), context.Canceled)
	require.ErrorIs(t, Bound[float32](ctx, bound, nil, a, a, Accumulation{}, Options{}), context.Canceled)
	for i := range c {
		require.True(t, c[i] == -1 && bound[i] == -1)
	}
	_, err := NewChecksums(ctx, a, a, 0)
	require.ErrorIs(t, err, context.Canceled)
	_, err = Compare(ctx, c, c, nil, CompareOptions{Rows: 40, Cols: 40})
	require.ErrorIs(t, err, context.Canceled)
	different := make([]float32, 1600)
	_, err = Compare(ctx, c, different, nil, CompareOptions{Rows: 40, Cols: 40, A: a, B: a})
	require.ErrorIs(t, err, context.Canceled)
}

// TestProgress: done rises to the total, the number of elements.
func TestProgress(t *testing.T) {
	a, b := plain("a", 70, 3000), plain("b", 50, 3000)
	c := make([]float32, 70*50)
	for _, workers := range []int{0, 1, 3} {
		last := int64(0)
		require.NoError(t, Exact(t.Context(), c, a, b, Options{Workers: workers, Progress: progress.Func(func(op string, done, total int64) {
			require.Equal(t, "exact", op)
			require.EqualValues(t, len(c), total)
			require.Greater(t, done, last)
			last = done
		})}))
		require.EqualValues(t, len(c), last)
	}
}
