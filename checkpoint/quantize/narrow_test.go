package quantize

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
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
					s, err := File(t.Context(), path, out, Options{Recipe: recipe, strip: strip})
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
		_, err := File(t.Context(), path, first, Options{Recipe: recipe})
		require.NoError(t, err)
		wide := scaling.Recipe{Profile: scaling.TEBlock, Block: tensor.Block{Rows: 1}}
		_, err = File(t.Context(), first, second, Options{Recipe: wide, Requantize: true, strip: 1000})
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
	_, err := File(t.Context(), path, out, Options{Recipe: recipe})
	require.EqualError(t, err, `tensor "w" of shape [3 5] has 15 elements, which do not fill whole bytes in E2M1: leave it out with --only`)
	filetest.RequireNothing(t, out)
}

// TestRequantizeOuter refuses outer scales that are missing, ambiguous or no numbers to
// multiply or divide by, as products do.
func TestRequantizeOuter(t *testing.T) {
	matrix := []safetensors.Tensor{
		filetest.Raw("w", safetensors.F4, []int{2, 2, 4}, make([]byte, 8)...), filetest.Raw("w_scale_inv", safetensors.F8E4M3, []int{4, 1}, 0x38, 0x38, 0x38, 0x38),
	}
	multiplier := func(values ...float32) safetensors.Tensor {
		return filetest.F32("w_outer_scale", []int{len(values)}, values...)
	}
	divisor := func(values ...float32) safetensors.Tensor {
		return filetest.F32("w_outer_divisor", []int{len(values)}, values...)
	}
	for _, test := range []struct {
		name, text string
		outer      []safetensors.Tensor
	}{
		{"missing", `the file has no tensor "w_outer_divisor", though its metadata say in octavo.outer that tensor "w" has an outer scale`, nil},
		{"both", `the file has outer scales "w_outer_scale" and "w_outer_divisor": it is not known which are those of tensor "w"`, []safetensors.Tensor{multiplier(1), divisor(1)}},
		{"NaN", `tensor "w": outer scale 0 is NaN: want a finite number that is not negative`, []safetensors.Tensor{divisor(float32(math.NaN()))}},
		{"negative", `tensor "w": outer scale 1 is -1: want a finite number that is not negative`, []safetensors.Tensor{multiplier(1, -1)}},
		{"zero", `tensor "w": outer scale 0 is 0 and a divisor`, []safetensors.Tensor{divisor(0)}},
		{"three", `tensor "w_outer_scale" of shape [3] does not hold the outer scales of tensor "w" of shape [2 2 4]: want one, or one for each of 4 rows`, []safetensors.Tensor{multiplier(1, 1, 1)}},
		{"bytes", `tensor "w_outer_scale" is U8: outer scales are F32`, []safetensors.Tensor{filetest.Raw("w_outer_scale", safetensors.U8, []int{1}, 1)}},
		{"of matrices", "", []safetensors.Tensor{multiplier(1, 2)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := filetest.Write(t, map[string]string{operands.OuterKey: operands.OuterDivisors}, append(slices.Clip(matrix), test.outer...)...)
			out := filetest.Output(t)
			_, err := File(t.Context(), in, out, Options{Recipe: scaling.Recipe{Profile: scaling.TEBlock, Block: tensor.Block{Rows: 1}}, Requantize: true})
			if test.text == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.text)
			filetest.RequireNothing(t, out)
		})
	}
}

// TestFormatsOfBytes quantizes one matrix to MXINT8 and then another to E3M4, beside bytes
// of another program: each matrix is read in its own format, and the bytes in none.
func TestFormatsOfBytes(t *testing.T) {
	in := filetest.Write(t, nil, filetest.F32("a", []int{1, 4}, 1, 2, 3, 4), filetest.F32("b", []int{1, 4}, 1, 2, 3, 4),
		filetest.Raw("other", safetensors.U8, []int{1, 4}, 1, 2, 3, 4), filetest.F32("other_scale_inv", []int{1, 1}, 1))
	quantize := func(f fp8.Format, only string) {
		t.Helper()
		out := filetest.Output(t)
		recipe := scaling.MXFloor.Recipe(scaling.Weight)
		recipe.Format = f
		_, err := File(t.Context(), in, out, Options{Recipe: recipe, Only: regexp.MustCompile(only), Requantize: true})
		require.NoError(t, err)
		in = out
	}
	quantize(fp8.MXINT8, "^a$")
	quantize(fp8.E3M4, "^b$")
	for name, want := range map[string]fp8.Format{"a": fp8.MXINT8, "b": fp8.E3M4} {
		x := operandOf(t, in, name, nil)
		values := make([]float32, 4)
		tensor.Dequantize(values, x)
		require.Equal(t, want, x.Format)
		require.Equal(t, []float32{1, 2, 3, 4}, values)
	}
	files, err := (&operands.Product{Files: []string{in}, A: operands.Operand{Codes: "other"}}).Open()
	require.NoError(t, err)
	defer files.Close()
	_, err = files.A()
	require.ErrorIs(t, err, operands.ErrFormat)

	quantize(fp8.E4M3, "^a$")
	metadata := filetest.Open(t, in).Metadata()
	require.Equal(t, "E3M4", metadata["octavo.format.b"])
	require.NotContains(t, metadata, "octavo.format.a")
}

// TestScalesOfBytes copies the scales of bytes that nobody knows: they are no weights.
func TestScalesOfBytes(t *testing.T) {
	scales := filetest.F32("other_scale_inv", []int{2, 2}, 1, 2, 3, 4.0625)
	in := filetest.Write(t, nil, filetest.F32("w", []int{2, 4}, 1, 2, 3, 4, 5, 6, 7, 8),
		filetest.Raw("other", safetensors.U8, []int{2, 4}, 1, 2, 3, 4, 5, 6, 7, 8), scales)
	out := filetest.Output(t)
	_, err := File(t.Context(), in, out, Options{Recipe: scaling.TECurrent.Recipe(scaling.Weight)})
	require.NoError(t, err)
	require.Equal(t, safetensors.F8E4M3, filetest.Info(t, filetest.Open(t, out), "w").DType)
	require.Equal(t, safetensors.F32, filetest.Info(t, filetest.Open(t, out), "other_scale_inv").DType)
	require.Equal(t, scales.Data, filetest.Bytes(t, filetest.Open(t, out), "other_scale_inv"))
}

// TestOuterBesideNone quantizes with an outer scale beside codes without one, which can be
// read after that too.
func TestOuterBesideNone(t *testing.T) {
	in := filetest.Write(t, nil, filetest.F32("w", []int{1, 16}, make([]float32, 16)...),
		filetest.Raw("other", safetensors.F4, []int{1, 16}, make([]byte, 8)...), filetest.Raw("other_scale_inv", safetensors.F8E4M3, []int{1, 1}, 0x38))
	out := filetest.Output(t)
	_, err := File(t.Context(), in, out, Options{Recipe: scaling.NVFP4TE.Recipe(scaling.Input), Only: regexp.MustCompile("^w$")})
	require.NoError(t, err)
	block := tensor.Block{Rows: 1, Cols: 16}
	require.True(t, operandOf(t, out, "other", &block).Outer.None())
	require.False(t, operandOf(t, out, "w", &block).Outer.None())
}

// TestRequantizeBytes decodes codes of the formats that have no type, of which the metadata
// say which they are, and refuses them where that is not asked for.
func TestRequantizeBytes(t *testing.T) {
	path, shapes := narrowFile(t)
	wide := scaling.Recipe{Profile: scaling.TEBlock, Block: tensor.Block{Rows: 1}}
	for _, f := range fp8.Formats() {
		if operands.DTypeOf(f) != "" {
			continue
		}
		t.Run(f.String(), func(t *testing.T) {
			first, second := filetest.Output(t), filetest.Output(t)
			recipe := scaling.MXFloor.Recipe(scaling.Weight)
			recipe.Format = f
			_, err := File(t.Context(), path, first, Options{Recipe: recipe})
			require.NoError(t, err)
			_, err = File(t.Context(), first, second, Options{Recipe: wide})
			require.ErrorContains(t, err, fmt.Sprintf("is %v already: --requantize decodes such tensors", f))
			s, err := File(t.Context(), first, second, Options{Recipe: wide, Requantize: true, strip: 1000})
			require.NoError(t, err)
			require.Equal(t, len(shapes), s.Requantized)
			for name := range shapes {
				x := operandOf(t, first, name, &recipe.Block)
				require.Equal(t, f, x.Format)
				exact := make([]float64, x.Len())
				tensor.Dequantize(exact, x)
				want := tensor.Tensor{Shape: x.Shape}
				require.NoError(t, scaling.Quantize(t.Context(), &want, exact, scaling.Quantizer{Recipe: wide}))
				require.Equal(t, want.Codes, operandOf(t, second, name, &wide.Block).Codes, name)
			}
			require.Len(t, filetest.Open(t, second).Tensors(), 2*len(shapes))
			require.Equal(t, "E4M3", filetest.Open(t, second).Metadata()[operands.FormatKey])
		})
	}
}

// TestRequantizeScales reads scales that are bytes as the metadata say, and refuses a byte
// that is none.
func TestRequantizeScales(t *testing.T) {
	for _, test := range []struct {
		name      string
		dtype     safetensors.DType
		data      byte
		metadata  string
		text      string
		wantScale float32
	}{
		{"E8M0 bytes", safetensors.U8, 129, "E8M0", "", 4},
		{"UE4M3 bytes", safetensors.U8, 0x48, "UE4M3", "", 4},
		{"in small letters", safetensors.U8, 129, "e8m0", "", 4},
		{"not said", safetensors.U8, 129, "", `tensor "w" is F4 and has no scales in a tensor "w_scale_inv" to decode it with`, 0},
		{"float32 in bytes", safetensors.U8, 129, "float32", `has no scales`, 0},
		{"type says it", safetensors.F8E8M0, 129, "UE4M3", "", 4},
		{"top bit", safetensors.F8E4M3, 0xC8, "", `tensor "w_scale_inv": scale 0 is the byte 0xc8, which is no UE4M3: its top bit is set`, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := filetest.Write(t, map[string]string{operands.ScaleFormatKey: test.metadata},
				filetest.Raw("w", safetensors.F4, []int{1, 4}, 0x12, 0x34), filetest.Raw("w_scale_inv", test.dtype, []int{1, 1}, test.data))
			out := filetest.Output(t)
			_, err := File(t.Context(), in, out, Options{Recipe: scaling.Recipe{Profile: scaling.MXFloor, Block: tensor.Block{Rows: 1}}, Requantize: true})
			if test.text != "" {
				require.ErrorContains(t, err, test.text)
				filetest.RequireNothing(t, out)
				return
			}
			require.NoError(t, err)
			x := operandOf(t, out, "w", &tensor.Block{})
			values := make([]float32, 4)
			tensor.Dequantize(values, x)
			require.Equal(t, []float32{test.wantScale * 1, test.wantScale * 0.5, test.wantScale * 2, test.wantScale * 1.5}, values)
		})
	}
}
