package gemm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestExactBlocks has blocks whose sums are as large as can be: up to the length for which
// design and package documentation say that they are exact in every order, and beyond,
// where float32 rounds in the canonical order and integers would not.
func TestExactBlocks(t *testing.T) {
	for _, c := range []struct {
		a, b  fp8.Format
		exact int // length
	}{
		{fp8.E2M1, fp8.E2M1, 116508}, {fp8.E2M1, fp8.E2M3, 23301}, {fp8.E2M3, fp8.E2M1, 23301},
		{fp8.E2M3, fp8.E2M3, 4660}, {fp8.MXINT8, fp8.MXINT8, 1024},
	} {
		lengths := []int{c.exact, c.exact + 9, c.exact &^ 7, c.exact + 63, 2 * c.exact}
		if testing.Short() {
			lengths = lengths[:2]
		}
		for _, k := range lengths {
			a, b := filledWith(c.a, 2, k), filledWith(c.b, 3, k)
			// Odd sums, which rounding shows in.
			a.Codes[0], a.Codes[k-1], b.Codes[0], b.Codes[k-1] = 1, 1, 1, 1
			want := reference(a, b)
			t.Run(describe(a, b), func(t *testing.T) {
				forLevels(t, func(t *testing.T) {
					got := make([]float32, len(want))
					require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{}))
					require.NoError(t, differ(got, want))
					w, err := gemm.Pack(b)
					require.NoError(t, err)
					x, err := a.RowRange(1, 2)
					require.NoError(t, err)
					require.NoError(t, gemm.Multiply(t.Context(), got[:3], x, w, gemm.Options{}))
					require.NoError(t, differ(got[:3], want[3:]))
				})
			})
		}
	}
}

// filledWith is a tensor of codes of the largest magnitude, in one block.
func filledWith(f fp8.Format, rows, k int) *tensor.Tensor {
	x := &tensor.Tensor{Name: "x", Format: f, Shape: []int{rows, k}, Scales: []float32{1}, Codes: make([]byte, rows*k)}
	for i := range x.Codes {
		if x.Codes[i] = f.MaxCode(); f == fp8.MXINT8 {
			x.Codes[i] = 0x80
		}
	}
	return x
}

// TestBitsAbove gives codes bits above the format's width, which do not count.
func TestBitsAbove(t *testing.T) {
	for _, f := range []fp8.Format{fp8.E2M1, fp8.E2M3, fp8.E3M2} {
		a, b := filledWith(f, 9, 80), filledWith(f, 40, 80)
		for i := range a.Codes {
			a.Codes[i] = byte(i*7) & (1<<f.Bits() - 1)
		}
		for i := range b.Codes {
			b.Codes[i] = byte(i*5) & (1<<f.Bits() - 1)
		}
		want := reference(a, b)
		for i := range b.Codes {
			b.Codes[i] |= byte(i*11) << f.Bits()
		}
		for i := range a.Codes {
			a.Codes[i] |= byte(i*3) << f.Bits()
		}
		forLevels(t, func(t *testing.T) {
			for _, rows := range []int{1, 9} {
				x, err := a.RowRange(0, rows)
				require.NoError(t, err)
				got := make([]float32, rows*40)
				require.NoError(t, gemm.Multiply(t.Context(), got, x, b, gemm.Options{}))
				require.NoError(t, differ(got, want[:rows*40]))
				w, err := gemm.Pack(b)
				require.NoError(t, err)
				require.NoError(t, gemm.Multiply(t.Context(), got, x, w, gemm.Options{}))
				require.NoError(t, differ(got, want[:rows*40]))
			}
		})
	}
}
