package transpose

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "transpose.")) }

var sizes = []int{1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 63, 64, 65, 72, 80, 129, 344}

// TestMatrix compares each element, and that nothing else is written.
func TestMatrix(t *testing.T) {
	kernelstest.At(t, cpu.Generic, func(t *testing.T) { check(t, cpu.Generic) })
	kernelstest.Compare(t, "transpose.Matrix", check)
}

func check(t *testing.T, _ cpu.Level) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, rows := range sizes {
		for _, cols := range sizes {
			srcStride, dstStride := cols+r.IntN(2)*r.IntN(20), rows+r.IntN(2)*r.IntN(20)
			src, dst := make([]float32, rows*srcStride), make([]float32, cols*dstStride+8)
			for i := range src {
				src[i] = float32(i + 1)
			}
			for i := range dst {
				dst[i] = -1
			}
			Matrix(dst, dstStride, src, srcStride, rows, cols)
			for i, got := range dst {
				want, col, row := float32(-1), i/dstStride, i%dstStride
				if col < cols && row < rows {
					want = src[row*srcStride+col]
				}
				if got != want {
					t.Fatalf("[%d, %d], strides %d and %d: element %d is %v, want %v", rows, cols, srcStride, dstStride, i, got, want)
				}
			}
		}
	}
}

func TestEmpty(t *testing.T) {
	Matrix(nil, 5, nil, 5, 0, 3)
	Matrix(nil, 5, nil, 5, 3, 0)
}

func TestShort(t *testing.T) {
	x, y := make([]float32, 20*20), make([]float32, 20*20-1)
	require.PanicsWithValue(t, short, func() { Matrix(x, 20, y, 20, 20, 20) })
	require.PanicsWithValue(t, short, func() { Matrix(y, 20, x, 20, 20, 20) })
	z := make([]float32, 20*20)
	require.PanicsWithValue(t, short, func() { Matrix(x, 20, z[:len(z)-1], 20, 20, 20) }, "with room behind it")
	require.PanicsWithValue(t, short, func() { Matrix(z[:len(z)-1], 20, x, 20, 20, 20) }, "with room behind it")
}
