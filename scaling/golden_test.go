package scaling_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestGolden compares codes and scales with those that PyTorch and NumPy
// computed for x [40, 300] and w [200, 300]. A case is named
// profile[.block].format; square blocks are those of w, all others of x.
func TestGolden(t *testing.T) { compareGolden(t, "scaling.safetensors", 30) }

// TestGoldenEdges is TestGolden of rows whose amax gives a scale beside a power of
// two.
func TestGoldenEdges(t *testing.T) { compareGolden(t, "scaling-edges.safetensors", 12) }

func compareGolden(t *testing.T, name string, want int) {
	file, err := safetensors.Open(testutil.Shared(t, "golden", name))
	require.NoError(t, err)
	defer file.Close()
	cases := 0
	for _, info := range file.Tensors() {
		name, ok := strings.CutSuffix(info.Name, ".codes")
		if !ok {
			continue
		}
		cases++
		t.Run(name, func(t *testing.T) {
			recipe, source := goldenCase(t, name)
			values, err := file.Float32s(source)
			require.NoError(t, err)
			shape, _ := file.Info(source)
			got := &tensor.Tensor{Name: source, Shape: shape.Shape}
			require.NoError(t, scaling.Quantize(t.Context(), got, values, scaling.Quantizer{Recipe: recipe}))

			codes, err := file.Bytes(name + ".codes")
			require.NoError(t, err)
			require.True(t, slices.Equal(codes, got.Codes), "codes differ")
			require.Equal(t, goldenScales(t, file, name+".scales"), bits(got.Scales))
		})
	}
	require.Equal(t, want, cases)
}

func goldenCase(t *testing.T, name string) (r scaling.Recipe, source string) {
	parts := strings.Split(name, ".")
	profile, err := scaling.ParseProfile(parts[0])
	require.NoError(t, err)
	r, source = profile.Recipe(scaling.Input), "x"
	if len(parts) == 3 {
		r.Block, err = tensor.ParseBlock(parts[1])
		require.NoError(t, err)
		if parts[1] == "128x128" {
			source = "w"
		}
	}
	r.Format, err = fp8.ParseFormat(parts[len(parts)-1])
	require.NoError(t, err)
	return r, source
}

func goldenScales(t *testing.T, file *safetensors.File, name string) []uint32 {
	if info, _ := file.Info(name); info.DType == safetensors.F8E8M0 {
		raw, err := file.Bytes(name)
		require.NoError(t, err)
		scales := make([]uint32, len(raw))
		for i, e := range raw {
			scales[i] = math.Float32bits(fp8.E8M0(e).Float32())
		}
		return scales
	}
	scales, err := file.Float32s(name)
	require.NoError(t, err)
	return bits(scales)
}

func bits(values []float32) []uint32 {
	b := make([]uint32, len(values))
	for i, v := range values {
		b[i] = math.Float32bits(v)
	}
	return b
}
