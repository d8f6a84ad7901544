package gemm_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestGolden compares products with those that NumPy computed in the canonical
// order, for every worker count, at
// every level.
func TestGolden(t *testing.T) {
	file, err := safetensors.Open(testutil.Shared(t, "golden", "gemm.safetensors"))
	require.NoError(t, err)
	defer file.Close()
	cases := 0
	for name, text := range file.Metadata() {
		if _, ok := file.Info(name + ".canonical"); !ok {
			continue
		}
		cases++
		t.Run(name, func(t *testing.T) {
			// "a E4M3 block 1x128, b E4M3 block 128x128"
			operandA, operandB, _ := strings.Cut(text, ", ")
			a := goldenOperand(t, file, name+".a", operandA)
			b := goldenOperand(t, file, name+".b", operandB)
			want, err := file.Float32s(name + ".canonical")
			require.NoError(t, err)
			forLevels(t, func(t *testing.T) {
				for workers := 1; workers <= 3; workers++ {
					got := make([]float32, len(want))
					require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{Workers: workers}))
					for i := range want {
						if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
							t.Fatalf("%d workers, element %d: got %v, want %v", workers, i, got[i], want[i])
						}
					}
				}
			})
		})
	}
	require.Equal(t, 8, cases)
}

func goldenOperand(t *testing.T, file *safetensors.File, name, text string) *tensor.Tensor {
	words := strings.Fields(text)
	format, err := fp8.ParseFormat(words[1])
	require.NoError(t, err)
	block, err := tensor.ParseBlock(words[3])
	require.NoError(t, err)
	info, ok := file.Info(name)
	require.True(t, ok)
	codes, err := file.Bytes(name)
	require.NoError(t, err)
	scales, err := file.Float32s(name + "_scales")
	require.NoError(t, err)
	x := &tensor.Tensor{Name: name, Format: format, Shape: info.Shape, Block: block, Codes: codes, Scales: scales}
	require.NoError(t, x.Check())
	return x
}
