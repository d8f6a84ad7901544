package gemm_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// misusedTensors are tensors that no product can be made of, nil among them, and some
// that it can.
func misusedTensors() []*tensor.Tensor {
	whole := func() *tensor.Tensor {
		return &tensor.Tensor{Name: "x", Shape: []int{2, 4}, Codes: make([]byte, 8), Scales: []float32{1}}
	}
	change := func(f func(t *tensor.Tensor)) *tensor.Tensor { t := whole(); f(t); return t }
	return []*tensor.Tensor{
		nil, {}, whole(),
		change(func(t *tensor.Tensor) { t.Shape = []int{2, -4} }),
		change(func(t *tensor.Tensor) { t.Shape = []int{-2, 4} }),
		change(func(t *tensor.Tensor) { t.Shape = []int{math.MaxInt, math.MaxInt} }),
		change(func(t *tensor.Tensor) { t.Shape, t.Codes, t.Scales = []int{math.MaxInt >> 8, 0}, nil, nil }),
		change(func(t *tensor.Tensor) { t.Shape, t.Codes, t.Scales = []int{math.MaxInt, 1 << 30, 0}, nil, nil }),
		change(func(t *tensor.Tensor) {
			t.Shape, t.Codes, t.Scales, t.Block = []int{math.MaxInt >> 8, 0}, nil, nil, tensor.Block{Rows: 1}
		}),
		change(func(t *tensor.Tensor) { t.Shape = []int{2, 2, 2} }),
		change(func(t *tensor.Tensor) { t.Shape = []int{0, 2, 2}; t.Codes, t.Scales = nil, nil }),
		change(func(t *tensor.Tensor) { t.Shape = []int{8} }),
		change(func(t *tensor.Tensor) { t.Shape = nil }),
		change(func(t *tensor.Tensor) { t.Codes = t.Codes[:7] }),
		change(func(t *tensor.Tensor) { t.Codes = nil }),
		change(func(t *tensor.Tensor) { t.Scales = nil }),
		change(func(t *tensor.Tensor) { t.Scales = []float32{float32(math.NaN())} }),
		change(func(t *tensor.Tensor) { t.Format = 99 }),
		change(func(t *tensor.Tensor) { t.Block = tensor.Block{Rows: -1, Cols: math.MinInt} }),
		change(func(t *tensor.Tensor) { t.Block = tensor.Block{Rows: math.MaxInt, Cols: math.MaxInt} }),
		change(func(t *tensor.Tensor) { t.Block = tensor.Block{Cols: 1}; t.Scales = make([]float32, 4) }),
		change(func(t *tensor.Tensor) { t.Stride = -4 }),
		change(func(t *tensor.Tensor) { t.Stride = math.MaxInt }),
		change(func(t *tensor.Tensor) { t.ScaleStride = math.MinInt }),
		change(func(t *tensor.Tensor) { t.Stride = 3 }),
	}
}

// survives runs f, which returns an error, or nothing, and does not panic.
func survives(t *testing.T, name string, f func() error) {
	t.Helper()
	require.NotPanics(t, func() { _ = f() }, name)
}

// TestMisuse hands everything that a caller can write to every function.
func TestMisuse(t *testing.T) {
	all := misusedTensors()
	good := all[2]
	w, err := gemm.Pack(good)
	require.NoError(t, err)
	weights := []*gemm.Packed{nil, {}, w}
	for i, a := range all {
		survives(t, fmt.Sprint("Pack ", i), func() error { _, err := gemm.Pack(a); return err })
		for j, b := range all {
			name := fmt.Sprint(i, " by ", j)
			for _, n := range []int{0, 4} {
				c := make([]float32, n)
				for _, o := range []gemm.Options{{}, {Workers: -1}, {Bias: c[:n/2]}, {Accumulate: true}, {Workers: math.MaxInt}} {
					survives(t, "Multiply "+name, func() error { return gemm.Multiply(t.Context(), c, a, b, o) })
				}
				for _, groups := range [][]int{nil, {}, {2}, {1, 1}, {-1, 3}, {math.MaxInt, 2}, {math.MinInt}, {0, 0}, {4}, {math.MaxInt >> 8}} {
					experts := make([]*tensor.Tensor, len(groups))
					packed := make([]*gemm.Packed, len(groups))
					for k := range groups {
						experts[k], packed[k] = b, weights[k%len(weights)]
					}
					survives(t, "GroupedRows "+name, func() error { return gemm.GroupedRows(t.Context(), c, a, experts, groups, gemm.Options{}) })
					survives(t, "GroupedRows "+name, func() error {
						return gemm.GroupedRows(t.Context(), c, a, experts[:len(groups)/2], groups, gemm.Options{})
					})
					survives(t, "GroupedRows, packed, "+name, func() error { return gemm.GroupedRows(t.Context(), c, a, packed, groups, gemm.Options{}) })
					survives(t, "GroupedMasked "+name, func() error { return gemm.GroupedMasked(t.Context(), c, a, experts, groups, gemm.Options{}) })
					survives(t, "GroupedK "+name, func() error { return gemm.GroupedK(t.Context(), c, a, b, groups, gemm.Options{}) })
				}
			}
			survives(t, "Quantized "+name, func() error {
				return gemm.Quantized(t.Context(), a, good, b, gemm.Options{}, scaling.Quantizer{})
			})
			survives(t, "MultiplyAndQuantize "+name, func() error {
				return gemm.MultiplyAndQuantize(t.Context(), make([]float32, 4), a, good, b, gemm.Options{}, scaling.Quantizer{})
			})
			survives(t, "CheckOperands "+name, func() error { _, err := gemm.CheckOperands(a, b); return err })
		}
		for _, w := range weights {
			survives(t, "Multiply, packed", func() error { return gemm.Multiply(t.Context(), make([]float32, 4), a, w, gemm.Options{}) })
			survives(t, "Dims", func() error { w.Dims(); return nil })
		}
	}
	for _, n := range []int{math.MinInt, -1, 0, 1, 3, math.MaxInt} {
		survives(t, "CheckBlocks", func() error { return gemm.CheckBlocks(tensor.Block{Rows: n, Cols: n}, tensor.Block{Cols: 128}) })
	}
	require.EqualError(t, gemm.Multiply(t.Context(), make([]float32, 4), good, good, gemm.Options{Workers: -1}), "gemm: -1 workers: want at least 0")
	require.Error(t, gemm.CheckBlocks(tensor.Block{Cols: -5}, tensor.Block{Cols: 128}))
}

// TestErrors tells errors apart as a program does.
func TestErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 1))
	x := random(r, "x", fp8.E4M3, tensor.Block{Cols: 2}, kind{}, 2, 8)
	column := random(r, "column", fp8.E4M3, tensor.Block{Cols: 1}, kind{}, 2, 8)
	long := random(r, "long", fp8.E4M3, tensor.Block{}, kind{}, 2, 9)
	bad := random(r, "bad", fp8.E4M3, tensor.Block{}, kind{}, 2, 8)
	bad.Scales[0] = -1
	short := random(r, "short", fp8.E4M3, tensor.Block{}, kind{}, 2, 8)
	short.Codes = short.Codes[1:]
	c := make([]float32, 4)
	multiply := func(a, b *tensor.Tensor) error { return gemm.Multiply(t.Context(), c, a, b, gemm.Options{}) }
	kinds := []error{gemm.ErrBlocks, gemm.ErrOperands, tensor.ErrShape, tensor.ErrScale}
	for _, test := range []struct{ err, want error }{
		{multiply(x, column), gemm.ErrBlocks},
		{gemm.CheckBlocks(x.Block, column.Block), gemm.ErrBlocks},
		{multiply(x, long), gemm.ErrOperands},
		{multiply(x, bad), tensor.ErrScale},
		{multiply(x, short), tensor.ErrShape},
		{gemm.Multiply(t.Context(), c, x, new(gemm.Packed), gemm.Options{}), gemm.ErrOperands},
		{gemm.GroupedRows(t.Context(), c, x, []*tensor.Tensor{x}, []int{1}, gemm.Options{}), gemm.ErrOperands},
		{gemm.GroupedRows(t.Context(), c, x, []*tensor.Tensor{}, []int{2}, gemm.Options{}), gemm.ErrOperands},
		{gemm.GroupedK(t.Context(), c, x, long, []int{8}, gemm.Options{}), gemm.ErrOperands},
	} {
		for _, kind := range kinds {
			require.Equal(t, kind == test.want, errors.Is(test.err, kind), "%v is %v", test.err, kind)
		}
	}
}

// TestCancelled ends the context before a product, which then writes nothing, and
// while there are products.
func TestCancelled(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 2))
	a := random(r, "a", fp8.E4M3, tile128, kind{}, 64, 256)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	calls := map[string]func(c []float32) error{
		"Multiply": func(c []float32) error { return gemm.Multiply(ctx, c, a, a, gemm.Options{}) },
		"GroupedRows": func(c []float32) error {
			return gemm.GroupedRows(ctx, c, a, []*tensor.Tensor{a}, []int{64}, gemm.Options{})
		},
		"Quantized": func([]float32) error {
			return gemm.Quantized(ctx, &tensor.Tensor{}, a, a, gemm.Options{}, scaling.Quantizer{})
		},
	}
	for name, call := range calls {
		require.NoError(t, call(make([]float32, 64*64)), name)
	}
	// The product is large enough not to be over when it is told to stop.
	large := random(r, "large", fp8.E4M3, tensor.Block{}, kind{}, 2000, 2000)
	done := make(chan error)
	go func() {
		c := make([]float32, 2000*2000)
		for {
			if err := gemm.Multiply(ctx, c, large, large, gemm.Options{}); err != nil {
				done <- err
				return
			}
		}
	}()
	cancel(reason)
	err := <-done
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, reason)
	for name, call := range calls {
		c := make([]float32, 64*64)
		for i := range c {
			c[i] = sentinel
		}
		err := call(c)
		require.ErrorIs(t, err, context.Canceled, name)
		require.EqualError(t, err, "gemm: context canceled: enough", name)
		for _, x := range c {
			require.Equal(t, float32(sentinel), x, name)
		}
	}
}

// counter is a progress.Reporter.
type counter struct {
	done, total int64
	falls       bool
}

func (c *counter) Progress(op string, done, total int64) {
	c.falls = c.falls || op != "gemm" || done < c.done
	c.done, c.total = done, total
}

func TestProgress(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 3))
	a := random(r, "a", fp8.E4M3, tile128, kind{}, 900, 64)
	b := random(r, "b", fp8.E4M3, square128, kind{}, 700, 64)
	forLevels(t, func(t *testing.T) {
		var c counter
		require.NoError(t, gemm.Multiply(t.Context(), make([]float32, 900*700), a, b, gemm.Options{Progress: &c}))
		require.Equal(t, counter{900 * 700, 900 * 700, false}, c)
		c = counter{}
		require.NoError(t, gemm.GroupedRows(t.Context(), make([]float32, 900*700), a, []*tensor.Tensor{b, b}, []int{300, 600}, gemm.Options{Progress: &c}))
		require.Equal(t, counter{900 * 700, 900 * 700, false}, c)
	})
}
