package quantize

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/filetest"
	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/operands"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// narrowFile is a file of matrices whose rows do not all fill whole bytes in F4 and F6.
func narrowFile(t *testing.T) (path string, shapes map[string][]int) {
	shapes = map[string][]int{"even": {36, 64}, "ragged": {40, 41}, "cube": {4, 6, 22}, "row": {1, 320}}
	r := rand.New(rand.NewPCG(1, 2))
	var all []safetensors.Tensor
	for _, name := range []string{"even", "ragged", "cube", "row"} {
		shape, n := shapes[name], 1
		for _, d := range shape {
			n *= d
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(math.Ldexp(r.NormFloat64(), -r.IntN(6)))
		}
		values[n-1] = 100 // the amax is in the last strip
		all = append(all, filetest.F32(name, shape, values...))
	}
	return filetest.Write(t, nil, all...), shapes
}

// TestNarrow quantizes in strips of several sizes under every profile of narrow formats,
// reads what was written as an operand, and compares with scaling.Quantize of the whole.
func TestNarrow(t *testing.T) {
	path, shapes := narrowFile(t)
	in := filetest.Open(t, path)
	for _, f := range []fp8.Format{fp8.E2M1, fp8.E2M3, fp8.E3M2, fp8.MXINT8, fp8.E4M3} {
		for _, p := range tensorfile.ProfilesFor(f) {
			if f != fp8.E2M1 && p.ScaleFormat() == tensor.Float32Scales && p != scaling.DeepSeek {
				continue
			}
			t.Run(fmt.Sprint(p, " ", f), func(t *testing.T) {
				recipe := p.Recipe(scaling.Weight)
				recipe.Format = f
				for _, strip := range []int64{1, 3000, 1 << 30} {
					out := filetest.Output(t)
					s, err := Job{In: path, Out: out, Recipe: recipe, strip: strip}.Run(t.Context())
					require.NoError(t, err)
					for name, shape := range shapes {
						values, err := in.Float32s(name)
						require.NoError(t, err)
						want := tensor.Tensor{Name: name, Shape: shape}
						st := fp8.Stats{Detail: new(fp8.Detail)}
						require.NoError(t, scaling.Quantize(t.Context(), &want, values, scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Stats: &st}}))
						got := operandOf(t, out, name, &recipe.Block)
						require.Equal(t, want.Codes, got.Codes, "%s in strips of %d", name, strip)
						require.Equal(t, want.Scales, got.Scales, name)
						require.Equal(t, want.Outer.Scales, got.Outer.Scales, name)
						require.Equal(t, []any{want.Format, want.ScaleFormat, want.Outer.Divide}, []any{got.Format, got.ScaleFormat, got.Outer.Divide})
						i := slices.IndexFunc(s.Tensors, func(l TensorLoss) bool { return l.Name == name })
						require.InDelta(t, sqnrOf(values, &want), float64(s.Tensors[i].SQNR), 1e-3, name)
					}
				}
			})
		}
	}
}

// sqnrOf is the SQNR of values that t was made of.
func sqnrOf(values []float32, t *tensor.Tensor) float64 {
	decoded := make([]float64, len(values))
	tensor.Dequantize(decoded, t)
	signal, noise := 0.0, 0.0
	for i, v := range values {
		signal += float64(v) * float64(v)
		noise += (float64(v) - decoded[i]) * (float64(v) - decoded[i])
	}
	return 10 * math.Log10(signal/noise)
}

func operandOf(t *testing.T, path, name string, b *tensor.Block) *tensor.Tensor {
	t.Helper()
	files, err := (&operands.Product{Files: []string{path}, A: operands.Operand{Codes: name, Block: b}}).Open()
	require.NoError(t, err)
	defer files.Close()
	x, err := files.A()
	require.NoError(t, err)
	return x
}

// TestRequantizeNarrow decodes what was quantized with two levels of scales.
func TestRequantizeNarrow(t *testing.T) {
	path, shapes := narrowFile(t)
	for _, p := range []scaling.Profile{scaling.NVFP4TE, scaling.NVFP4TERow, scaling.NVFP4CompressedTensors, scaling.NVFP4TorchAO} {
		first, second := filetest.Output(t), filetest.Output(t)
		recipe := p.Recipe(scaling.Input)
		_, err := Job{In: path, Out: first, Recipe: recipe}.Run(t.Context())
		require.NoError(t, err)
		wide := scaling.Recipe{Profile: scaling.TEBlock, Block: tensor.Block{Rows: 1}}
		_, err = Job{In: first, Out: second, Recipe: wide, Requantize: true, strip: 1000}.Run(t.Context())
		require.NoError(t, err)
		for name := range shapes {
			x := operandOf(t, first, name, &recipe.Block)
			exact := make([]float64, x.Len())
			tensor.Dequantize(exact, x)
			want := tensor.Tensor{Shape: x.Shape}
			require.NoError(t, scaling.Quantize(t.Context(), &want, exact, scaling.Quantizer{Recipe: wide}))
			got := operandOf(t, second, name, &wide.Block)
			require.Equal(t, want.Codes, got.Codes, "%s of %s", name, p)
			require.True(t, got.Outer.None())
		}
		require.Len(t, filetest.Open(t, second).Tensors(), 2*len(shapes))
	}
}

// TestOddNibbles refuses what no file can hold.
func TestOddNibbles(t *testing.T) {
	path := filetest.Write(t, nil, filetest.F32("w", []int{3, 5}, make([]float32, 15)...))
	recipe := scaling.NVFP4TE.Recipe(scaling.Weight)
	out := filetest.Output(t)
	_, err := Job{In: path, Out: out, Recipe: recipe}.Run(t.Context())
	require.EqualError(t, err, `tensor "w" of shape [3 5] has 15 elements, which do not fill whole bytes in E2M1: leave it out with --only`)
	filetest.RequireNothing(t, out)
}
