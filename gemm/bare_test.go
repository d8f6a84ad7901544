package gemm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestBareKernel has a kernel that does nothing but multiply, as one for another
// processor may at first.
func TestBareKernel(t *testing.T) {
	levels := cpu.Levels()
	full := microkernel.For(levels[len(levels)-1])
	if full == nil {
		t.Skip("no level of this build and machine has micro-kernels")
	}
	bare := &microkernel.Kernels{MR: full.MR, NR: full.NR, Multiply: full.Multiply}
	r := rand.New(rand.NewPCG(1, 1))
	for _, m := range []int{1, 3, 20} {
		for _, f := range fp8.Formats() {
			operand := func(rows int) *tensor.Tensor {
				x := &tensor.Tensor{Format: f, Shape: []int{rows, 150}, Block: tensor.Block{Rows: 1, Cols: 50}}
				for range rows * 150 {
					x.Codes = append(x.Codes, byte(r.Uint32()))
				}
				for range rows * 3 {
					x.Scales = append(x.Scales, float32(r.ExpFloat64()))
				}
				return x
			}
			p, err := newProduct(operand(m), operand(45))
			require.NoError(t, err)
			var results [3][]float32
			for i, w := range []backend{genericBackend{}, p.chooseVectors(vectorBackend{bare}), p.chooseVectors(vectorBackend{full})} {
				results[i] = make([]float32, m*45)
				computeWith(t, results[i], p, w)
			}
			for i, want := range results[0] {
				require.Equal(t, math.Float32bits(want), math.Float32bits(results[1][i]))
				require.Equal(t, math.Float32bits(want), math.Float32bits(results[2][i]))
			}
		}
	}
}
