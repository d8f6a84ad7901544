package gemm_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
	"github.com/octavo-fp8/octavo/tensor"
)

// blocks are multiplied in all pairs that the contract allows.
var blocks = []tensor.Block{
	{}, {Rows: 1}, {Cols: 128}, {Rows: 1, Cols: 128}, {Rows: 128, Cols: 128}, {Rows: 1, Cols: 32}, {Rows: 1, Cols: 16},
	{Rows: 3, Cols: 5}, {Rows: 7, Cols: 15}, {Rows: 64, Cols: 96}, {Rows: 2, Cols: 48}, {Rows: 5, Cols: 33},
	{Rows: 4, Cols: 3}, {Rows: 2, Cols: 1000}, {Rows: 1, Cols: 2}, {Rows: 128, Cols: 1}, {Rows: 1, Cols: 1},
}

// allowed says whether two blocks go together for a given K, as the contract
// has it.
func allowed(a, b tensor.Block, k int) bool {
	if k < 2 {
		return true
	}
	if a.Cols == 1 || b.Cols == 1 {
		return false
	}
	wholeA, wholeB := a.Cols == 0 || a.Cols >= k, b.Cols == 0 || b.Cols >= k
	return wholeA || wholeB || a.Cols%b.Cols == 0 || b.Cols%a.Cols == 0
}

// sizes lie around the limits of tiles, chunks and blocks.
var (
	rowSizes = []int{0, 1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 67}
	kSizes   = []int{0, 1, 2, 5, 15, 16, 31, 32, 33, 61, 64, 95, 96, 97, 127, 128, 129, 160, 191, 257}
)

func pick(r *rand.Rand, from []int) int { return from[r.IntN(len(from))] }

// TestMultiply compares Multiply with the reference over all pairs of blocks,
// formats mixed, for any number of workers, at every level.
func TestMultiply(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	each, every := trials(12), 1
	if testing.Short() {
		each, every = 1, 12/each
	}
	for i, blockA := range blocks {
		for j, blockB := range blocks {
			if (i+j)%every != 0 {
				continue
			}
			for range each {
				m, n, k := pick(r, rowSizes), pick(r, rowSizes), pick(r, kSizes)
				if !allowed(blockA, blockB, k) {
					continue
				}
				a := random(r, "a", anyFormat(r), blockA, anyKind(r), m, k)
				b := random(r, "b", anyFormat(r), blockB, anyKind(r), n, k)
				compareLevels(t, r, a, b)
			}
		}
	}
	for _, l := range levels {
		if slices.Contains(cpu.Levels(), l) && !t.Failed() {
			kernelstest.Tested(t, "gemm.Multiply", l)
		}
	}
}

// TestWorkers checks that no number of workers, more than there are tiles
// included, changes a bit.
func TestWorkers(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	a := random(r, "a", fp8.E4M3, tensor.Block{Rows: 1, Cols: 32}, kind{special: true}, 150, 100)
	b := random(r, "b", fp8.E5M2, tensor.Block{Rows: 128, Cols: 64}, kind{special: true}, 70, 100)
	want := reference(a, b)
	forLevels(t, func(t *testing.T) {
		for workers := 0; workers <= 20; workers++ {
			got := make([]float32, len(want))
			require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{Workers: workers}))
			require.NoError(t, differ(got, want), "%d workers", workers)
		}
	})
}

// TestConcurrent multiplies one pair of operands from many goroutines.
func TestConcurrent(t *testing.T) { forLevels(t, testConcurrent) }

func testConcurrent(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	a := random(r, "a", fp8.E4M3, tile128, kind{}, 70, 200)
	b := random(r, "b", fp8.E4M3, square128, kind{}, 40, 200)
	want := reference(a, b)
	got := make([][]float32, 8)
	var wait sync.WaitGroup
	for i := range got {
		got[i] = make([]float32, len(want))
		wait.Go(func() {
			if err := gemm.Multiply(t.Context(), got[i], a, b, gemm.Options{Workers: 1 + i%3}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, c := range got {
		require.NoError(t, differ(c, want))
	}
}

// TestPadding checks that tokens of zero codes behind K change no bit, whatever
// their scales. There is one exception: a block of its own, p = +0, makes +0 of
// a c that has underflowed to -0.
func TestPadding(t *testing.T) { forLevels(t, testPadding) }

func testPadding(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range trials(400) {
		k, extra := r.IntN(100), r.IntN(70)
		b := []tensor.Block{{Rows: 1, Cols: 16}, {Rows: 2, Cols: 32}}[r.IntN(2)]
		kd := kinds[r.IntN(5)] // with scales of float32
		x := random(r, "x", fp8.E4M3, b, kd, 5, k)
		y := random(r, "y", fp8.E5M2, tensor.Block{Rows: 3, Cols: 16}, kd, 4, k)
		want, got := make([]float32, 20), make([]float32, 20)
		require.NoError(t, gemm.Multiply(t.Context(), want, x, y, gemm.Options{}))
		require.NoError(t, gemm.Multiply(t.Context(), got, padded(r, x, extra), padded(r, y, extra), gemm.Options{}))
		if (k+15)/16 < (k+extra+15)/16 {
			for i := range want {
				want[i] += 0
			}
		}
		require.NoError(t, differ(got, want), "%s and %d more", describe(x, y), extra)
	}
}

// padded returns a copy of x with columns of zeros appended, of either sign;
// blocks that are new get scales of their own.
func padded(r *rand.Rand, x *tensor.Tensor, extra int) *tensor.Tensor {
	rows, k := x.Dims()
	p := random(r, x.Name, x.Format, x.Block, kind{wide: true}, rows, k+extra)
	for i := range rows {
		row := p.Row(i)
		copy(row, x.Row(i))
		for j := k; j < len(row); j++ {
			row[j] = byte(r.IntN(2)) << 7
		}
	}
	gridRows, _ := x.Grid()
	for i := range gridRows {
		copy(p.ScaleRow(i), x.ScaleRow(i))
	}
	return p
}

// TestZeroScale checks that +0 is an allowed scale and makes zeros of what is
// finite.
func TestZeroScale(t *testing.T) { forLevels(t, testZeroScale) }

func testZeroScale(t *testing.T) {
	x := &tensor.Tensor{Shape: []int{2, 2}, Block: tensor.Block{Rows: 1}, Codes: []byte{0x38, 0xB8, 0x38, 0xB8}, Scales: []float32{0, 1}}
	got := make([]float32, 4)
	require.NoError(t, gemm.Multiply(t.Context(), got, x, x, gemm.Options{}))
	require.NoError(t, differ(got, []float32{0, 0, 0, 2}))
	x.Codes[0] = 0x7F
	require.NoError(t, gemm.Multiply(t.Context(), got, x, x, gemm.Options{}))
	nan := canonical(float32(math.NaN()))
	require.NoError(t, differ(got, []float32{nan, nan, nan, 2}))
}

// TestScaleOrder checks results that tell p*sa*sb, p*(sa*sb) and the order of the
// operands apart.
func TestScaleOrder(t *testing.T) { forLevels(t, testScaleOrder) }

func testScaleOrder(t *testing.T) {
	multiply := func(codeA, codeB byte, sa, sb float32) float32 {
		a := &tensor.Tensor{Shape: []int{1, 1}, Codes: []byte{codeA}, Scales: []float32{sa}}
		b := &tensor.Tensor{Shape: []int{1, 1}, Codes: []byte{codeB}, Scales: []float32{sb}}
		c := make([]float32, 1)
		require.NoError(t, gemm.Multiply(t.Context(), c, a, b, gemm.Options{}))
		return c[0]
	}
	// 448*448 is 0x1.88p17. The product of the scales would underflow.
	require.Equal(t, float32(0x1.88p-133), multiply(0x7E, 0x7E, 0x1p-50, 0x1p-100))
	require.Equal(t, float32(0x1.88p-133), multiply(0x7E, 0x7E, 0x1p-100, 0x1p-50))
	// p*sa overflows, p*sb would not.
	require.Equal(t, float32(math.Inf(1)), multiply(0x7E, 0x7E, 0x1p120, 0x1p-20))
	require.Equal(t, float32(0x1.88p117), multiply(0x7E, 0x7E, 0x1p-20, 0x1p120))
	// p*sa underflows to -0, and the sum with the first +0 is +0; where only the
	// fma underflows the sign stays.
	require.Equal(t, uint32(0), math.Float32bits(multiply(0x81, 0x01, 0x1p-149, 0x1p-10)))
	require.Equal(t, uint32(1<<31), math.Float32bits(multiply(0x81, 0x01, 0x1p-100, 0x1p-100)))
}

// TestViews multiplies views of tensors, as they are and copied.
func TestViews(t *testing.T) { forLevels(t, testViews) }

func testViews(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range trials(60) {
		block := tensor.Block{Rows: 1 + r.IntN(4), Cols: 16 * (1 + r.IntN(3))}
		whole := random(r, "x", anyFormat(r), block, anyKind(r), 40, 200)
		cut := func(cols int) *tensor.Tensor {
			first := block.Rows * r.IntN(5)
			v, err := whole.RowRange(first, first+r.IntN(20))
			require.NoError(t, err)
			v, err = v.ColRange(block.Cols, block.Cols+cols)
			require.NoError(t, err)
			return v
		}
		k := r.IntN(150)
		a, b := cut(k), cut(k)
		denseA, denseB := dense(a), dense(b)
		m, _ := a.Dims()
		n, _ := b.Dims()
		want := reference(denseA, denseB)
		got := make([]float32, m*n)
		require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{}))
		require.NoError(t, differ(got, want), describe(a, b))
		clear(got)
		require.NoError(t, gemm.Multiply(t.Context(), got, denseA, b, gemm.Options{}))
		require.NoError(t, differ(got, want), describe(a, b))
	}
}

// TestRanks multiplies tensors that are no matrices: leading dimensions are
// rows, a vector is one row.
func TestRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	shapes := [][]int{{7}, {3, 7}, {2, 3, 7}, {2, 1, 2, 7}, {0, 3, 7}, {1, 7}}
	for _, shapeA := range shapes {
		for _, shapeB := range shapes {
			a := random(r, "a", fp8.E4M3, tensor.Block{Rows: 2, Cols: 3}, kind{}, shapeA...)
			b := random(r, "b", fp8.E4M3, tensor.Block{Rows: 1}, kind{}, shapeB...)
			want := reference(a, b)
			got := make([]float32, len(want))
			require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{}))
			require.NoError(t, differ(got, want))
		}
	}
	scalar := &tensor.Tensor{Codes: []byte{0x40}, Scales: []float32{3}}
	c := make([]float32, 1)
	require.NoError(t, gemm.Multiply(t.Context(), c, scalar, scalar, gemm.Options{}))
	require.Equal(t, []float32{36}, c)
}
