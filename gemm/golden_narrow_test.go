package gemm_test

import (
	"encoding/json"
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

// narrowCase is what the file of products in narrow formats says of one.
type narrowCase struct {
	A string `json:"a"` // "E2M1 UE4M3 1x16"
	B string `json:"b"`
}

// TestGoldenNarrow compares products in the narrow formats, with encoded scales and outer
// ones, with those that NumPy computed in the canonical order, at every level.
func TestGoldenNarrow(t *testing.T) {
	file, err := safetensors.Open(testutil.Shared(t, "golden", "narrow", "gemm.safetensors"))
	require.NoError(t, err)
	defer file.Close()
	var cases map[string]narrowCase
	require.NoError(t, json.Unmarshal([]byte(file.Metadata()["cases"]), &cases))
	require.Len(t, cases, 23)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := narrowOperand(t, file, name, "a", c.A), narrowOperand(t, file, name, "b", c.B)
			want, err := file.Float32s(name + ".canonical")
			require.NoError(t, err)
			forLevels(t, func(t *testing.T) {
				for workers := 1; workers <= 2; workers++ {
					got := make([]float32, len(want))
					require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{Workers: workers}))
					require.NoError(t, differ(got, want), "%d workers", workers)
					w, err := gemm.Pack(b)
					require.NoError(t, err)
					clear(got)
					require.NoError(t, gemm.Multiply(t.Context(), got, a, w, gemm.Options{Workers: workers}))
					require.NoError(t, differ(got, want), "packed, %d workers", workers)
				}
			})
		})
	}
}

func narrowOperand(t *testing.T, file *safetensors.File, name, operand, text string) *tensor.Tensor {
	words := strings.Fields(text)
	format, err := fp8.ParseFormat(words[0])
	require.NoError(t, err)
	block, err := tensor.ParseBlock(words[2])
	require.NoError(t, err)
	name += "." + operand
	info, ok := file.Info(name)
	require.True(t, ok)
	x := &tensor.Tensor{Name: name, Format: format, Shape: info.Shape, Block: block}
	x.Codes, err = file.Bytes(name)
	require.NoError(t, err)
	switch words[1] {
	case "F32":
		x.Scales, err = file.Float32s(name + "_scales")
		require.NoError(t, err)
	case "E8M0":
		x.ScaleFormat = tensor.E8M0Scales
		codes, err := file.Bytes(name + "_scales")
		require.NoError(t, err)
		for _, c := range codes {
			x.Scales = append(x.Scales, fp8.E8M0(c).Float32())
		}
	case "UE4M3":
		x.ScaleFormat = tensor.UE4M3Scales
		codes, err := file.Bytes(name + "_scales")
		require.NoError(t, err)
		for _, c := range codes {
			require.Less(t, c, byte(0x80))
			x.Scales = append(x.Scales, fp8.E4M3.Float32(c))
		}
	}
	if _, ok := file.Info(name + "_global"); ok {
		x.Outer.Scales, err = file.Float32s(name + "_global")
		require.NoError(t, err)
	}
	require.NoError(t, x.CheckScales())
	require.False(t, math.IsNaN(float64(x.Outer.At(0))))
	return x
}
