package multiply

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestProductBands checks that results do not depend on how many rows are
// computed at once.
func TestProductBands(t *testing.T) {
	const m, n, k = 13, 3, 40
	operand := func(rows int, block tensor.Block) *tensor.Tensor {
		x := &tensor.Tensor{Shape: []int{rows, k}, Block: block, Codes: make([]byte, rows*k)}
		for i := range x.Codes {
			x.Codes[i] = byte(i*i*7%251) &^ 0x40
		}
		clear(x.Codes[:min(8*k, len(x.Codes))][max(0, min(7*k, len(x.Codes))):])
		r, c := x.Grid()
		for i := range r * c {
			x.Scales = append(x.Scales, 1/float32(i+3))
		}
		return x
	}
	for _, rows := range []int{0, 1, 4, 13, 128} {
		for _, cols := range []int{0, 32} {
			a, b := operand(m, tensor.Block{Rows: rows, Cols: cols}), operand(n, tensor.Block{Rows: 2, Cols: 32})
			var want []byte
			for _, band := range []int{1 << 24, 1, 3, 6, 15, 38, 39, 40} {
				p, out := Product{A: a, B: b, band: band}, filetest.Output(t)
				require.NoError(t, p.WriteFile(t.Context(), out, safetensors.F32))
				got := filetest.Bytes(t, filetest.Open(t, out), "c")
				if want == nil {
					want = got
				}
				require.Equal(t, want, got, "block %v, band %d", a.Block, band)
				require.Nil(t, p.NonFinite)

				a.Codes[7*k+1] = 0x7F // a NaN in row 7
				q := Product{A: a, B: b, band: band}
				require.NoError(t, q.WriteFile(t.Context(), out, safetensors.F32))
				require.Equal(t, 7*n, q.NonFinite.Index)
				a.Codes[7*k+1] = 0

				if len(a.Scales) > 1 {
					last := &a.Scales[len(a.Scales)-1]
					good := *last
					*last = float32(math.NaN())
					r, c := a.Grid()
					require.ErrorContains(t, q.WriteFile(t.Context(), out, safetensors.F32), fmt.Sprintf("scale of block (%d, %d) is NaN", r-1, c-1))
					*last = good
				}
			}
		}
	}
}

// TestInterrupted checks that a product that is stopped leaves no file behind.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := &tensor.Tensor{Shape: []int{1, 1}, Codes: []byte{0}, Scales: []float32{1}}
	out := filetest.Output(t)
	p := Product{A: x, B: x}
	require.ErrorIs(t, p.WriteFile(ctx, out, safetensors.F32), context.Canceled)
	filetest.RequireNothing(t, out)
}
