package power

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestNarrow raises no alarm for octavo's own products of MXFP4 and of NVFP4 without outer
// scales, and says why it has nothing to say of outer ones.
func TestNarrow(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 2))
	const m, n, k = 48, 40, 320
	operand := func(rows, width int, f tensor.ScaleFormat) *tensor.Tensor {
		x := &tensor.Tensor{Format: fp8.E2M1, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: width}, ScaleFormat: f}
		for range rows * k {
			x.Codes = append(x.Codes, byte(r.IntN(16)))
		}
		for range rows * k / width {
			if f == tensor.UE4M3Scales {
				x.Scales = append(x.Scales, fp8.E4M3.Float32(byte(0x20+r.IntN(0x40))))
			} else {
				x.Scales = append(x.Scales, fp8.E8M0(115+r.IntN(20)).Float32())
			}
		}
		return x
	}
	for range 4 {
		for f, width := range map[tensor.ScaleFormat]int{tensor.E8M0Scales: 32, tensor.UE4M3Scales: 16} {
			a, b := operand(m, width, f), operand(n, width, f)
			got := make([]float32, m*n)
			require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{}))
			report, err := Measure(t.Context(), got, nil, a, b, Options{})
			require.NoError(t, err)
			require.False(t, report.Alarm, "%v: %v", f, report)
			a.Outer.Scales = []float32{0.01}
			_, err = Measure(t.Context(), got, nil, a, b, Options{})
			require.ErrorIs(t, err, ErrRefused)
			require.ErrorContains(t, err, "outer scales")
		}
	}
}
