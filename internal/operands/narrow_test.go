package operands

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// values decodes an operand.
func values(t *testing.T, x *tensor.Tensor) []float32 {
	t.Helper()
	require.NoError(t, x.CheckScales())
	v := make([]float32, x.Len())
	tensor.Dequantize(v, x)
	return v
}

// TestNarrow reads codes of four and six bits, with scales of a byte and outer ones, that
// were written by hand.
func TestNarrow(t *testing.T) {
	// 1, -2, 0.5, 6 in E2M1 are 2, C, 1, 7.
	four := []byte{0xC2, 0x71, 0xC2, 0x71}
	file := write(t,
		raw("w", safetensors.F4, []int{2, 4}, four...), raw("w_scale_inv", safetensors.F8E4M3, []int{2, 1}, 0x38, 0x40), // 1, 2
		raw("w_outer_scale", safetensors.F32, []int{1}, floats(0.5)...),
		raw("d", safetensors.F4, []int{2, 4}, four...), raw("d_scale_inv", safetensors.F8E4M3, []int{2, 1}, 0x38, 0x40),
		raw("d_outer_divisor", safetensors.F32, []int{2}, floats(2, 4)...),
		raw("packed", safetensors.U8, []int{2, 2}, four...), raw("weight_scale", safetensors.F8E4M3, []int{2, 1}, 0x38, 0x40), raw("weight_global", safetensors.F32, nil, floats(2)...),
		// 1, 2, 3, 4 in E2M3 are 8, 10, 14, 18.
		raw("six", safetensors.F6E2M3, []int{1, 4}, 0x08|0x10<<6&0xFF, 0x10>>2|0x14<<4&0xFF, 0x14>>4|0x18<<2), raw("six_scale_inv", safetensors.F8E8M0, []int{1, 1}, 128),
		raw("stack", safetensors.F4, []int{2, 1, 4}, four...), raw("stack_scale_inv", safetensors.F8E8M0, []int{2, 1}, 127, 127), raw("stack_outer_scale", safetensors.F32, []int{2}, floats(1, 10)...),
		raw("bytes", safetensors.U8, []int{1, 2}, 7, 1), raw("bytes_scale_inv", safetensors.F8E8M0, []int{1}, 127),
	)
	files, err := (&Product{Files: []string{file}}).Open()
	require.NoError(t, err)
	defer files.Close()
	e2m1 := fp8.E2M1
	for _, test := range []struct {
		o     Operand
		want  []float32
		scale tensor.ScaleFormat
	}{
		{Operand{Codes: "w"}, []float32{0.5, -1, 0.25, 3, 1, -2, 0.5, 6}, tensor.UE4M3Scales},
		{Operand{Codes: "w", Outer: "weight_global", OuterDivides: true}, []float32{0.5, -1, 0.25, 3, 1, -2, 0.5, 6}, tensor.UE4M3Scales},
		{Operand{Codes: "w", Outer: "weight_global"}, []float32{2, -4, 1, 12, 4, -8, 2, 24}, tensor.UE4M3Scales},
		{Operand{Codes: "d"}, []float32{0.5, -1, 0.25, 3, 0.5, -1, 0.25, 3}, tensor.UE4M3Scales},
		{Operand{Codes: "packed", Packed: true, Format: &e2m1, Scales: "weight_scale", Outer: "weight_global", OuterDivides: true}, []float32{0.5, -1, 0.25, 3, 1, -2, 0.5, 6}, tensor.UE4M3Scales},
		{Operand{Codes: "six"}, []float32{2, 4, 6, 8}, tensor.E8M0Scales},
		{Operand{Codes: "stack"}, []float32{1, -2, 0.5, 6, 10, -20, 5, 60}, tensor.E8M0Scales},
		{Operand{Codes: "bytes", Format: &e2m1}, []float32{6, 0.5}, tensor.E8M0Scales},
	} {
		x, err := test.o.Read(&files.a)
		require.NoError(t, err, "%+v", test.o)
		require.Equal(t, test.want, values(t, x), "%+v", test.o)
		require.Equal(t, test.scale, x.ScaleFormat)
	}
}

// TestNarrowErrors names what is wrong with codes and scales of less than a byte.
func TestNarrowErrors(t *testing.T) {
	file := write(t,
		raw("u", safetensors.U8, []int{1, 2}, 7, 0x12), raw("u_scale_inv", safetensors.F8E8M0, []int{1}, 127),
		raw("odd", safetensors.U8, []int{2, 2}, 7, 1, 1, 1), raw("odd_scale_inv", safetensors.F8E8M0, []int{1}, 127),
		raw("scalar", safetensors.U8, nil, 7), raw("scalar_scale_inv", safetensors.F8E8M0, []int{1}, 127),
		raw("w", safetensors.F4, []int{1, 4}, 0xC2, 0x71),
		raw("w_scale_inv", safetensors.F8E4M3, []int{1, 1}, 0x38),
		raw("negative", safetensors.F8E4M3, []int{1, 1}, 0xB8), raw("half", safetensors.F16, []int{1, 1}, 0, 0), raw("bytes", safetensors.U8, []int{1, 1}, 1),
		raw("two", safetensors.F32, []int{2}, floats(1, 1)...), raw("outer16", safetensors.BF16, []int{1}, 0, 0),
		raw("both", safetensors.F4, []int{1, 4}, 0xC2, 0x71), raw("both_scale_inv", safetensors.F8E4M3, []int{1, 1}, 0x38),
		raw("both_outer_scale", safetensors.F32, []int{1}, floats(1)...), raw("both_outer_divisor", safetensors.F32, []int{1}, floats(1)...),
		raw("one", safetensors.F32, []int{1, 1}, floats(1)...),
		raw("divisor", safetensors.F4, []int{1, 4}, 0xC2, 0x71), raw("divisor_scale_inv", safetensors.F8E4M3, []int{1, 1}, 0x38),
		raw("divisor_outer_divisor", safetensors.F32, []int{1}, floats(1)...),
		raw("zero", safetensors.F32, []int{1}, floats(0)...),
	)
	files, err := (&Product{Files: []string{file}}).Open()
	require.NoError(t, err)
	defer files.Close()
	e2m1, e2m3, e8m0, ue4m3 := fp8.E2M1, fp8.E2M3, tensor.E8M0Scales, tensor.UE4M3Scales
	for _, test := range []struct {
		o    Operand
		kind error
		text string
	}{
		{Operand{Codes: "u", Format: &e2m1}, tensor.ErrCode, `tensor "u": code 0x12 at (0, 1) has more than the 4 bits of E2M1`},
		{Operand{Codes: "odd", Format: &e2m3, Packed: true}, tensor.ErrShape, `tensor "odd" of shape [2 2]: its rows hold no whole number of codes of 6 bits`},
		{Operand{Codes: "scalar", Format: &e2m1, Packed: true}, tensor.ErrShape, `tensor "scalar" of shape []: its rows hold no whole number of codes of 4 bits`},
		{Operand{Codes: "w", Packed: true}, ErrFormat, `tensor "w" is F4, which says whether codes lie side by side: only those of U8 may`},
		{Operand{Codes: "w", Format: &e2m3}, ErrFormat, `tensor "w" is F4 and not F6_E2M3`},
		{Operand{Codes: "w", Scales: "negative"}, tensor.ErrScale, `tensor "negative": scale 0 is the byte 0xb8, which is no UE4M3: its top bit is set`},
		{Operand{Codes: "w", Scales: "half"}, ErrScales, `tensor "half" is F16: scales are F32, F8_E8M0 or F8_E4M3`},
		{Operand{Codes: "w", ScaleFormat: &e8m0}, ErrScaleFormat, `tensor "w_scale_inv" is F8_E4M3: its scales are in UE4M3 and not in E8M0`},
		{Operand{Codes: "w", Scales: "one", ScaleFormat: &e8m0}, ErrScaleFormat, `tensor "one" is F32: its scales are in float32 and not in E8M0`},
		{Operand{Codes: "u", Format: &e2m1, Packed: true, ScaleFormat: &ue4m3}, ErrScaleFormat, `tensor "u_scale_inv" is F8_E8M0: its scales are in E8M0 and not in UE4M3`},
		{Operand{Codes: "w", OuterDivides: true}, ErrOuter, `the outer scales of "w" that are said to be divisors have no name`},
		{Operand{Codes: "divisor", OuterDivides: true}, ErrOuter, `the outer scales of "divisor" that are said to be divisors have no name`},
		{Operand{Codes: "w", Outer: "none"}, ErrName, `no tensor "none"`},
		{Operand{Codes: "w", Outer: "two"}, tensor.ErrShape, `tensor "two" of shape [2] does not hold the outer scales of tensor "w" of shape [1 4]: want one, or one for each of 1 rows`},
		{Operand{Codes: "w", Outer: "outer16"}, ErrOuter, `tensor "outer16" is BF16: outer scales are F32`},
		{Operand{Codes: "both"}, ErrOuter, `the file has outer scales "both_outer_scale" and "both_outer_divisor": it is not known which are those of tensor "both"`},
	} {
		_, err := test.o.Read(&files.a)
		require.ErrorIs(t, err, test.kind, "%+v", test.o)
		require.ErrorContains(t, err, test.text)
		if test.kind != ErrScaleFormat {
			require.NotContains(t, err.Error(), test.o.Codes+ScaleSuffix, "which is not what is wrong")
		}
	}
	codes, err := files.a.Find("w")
	require.NoError(t, err)
	scales, err := files.a.Find("bytes")
	require.NoError(t, err)
	x, err := (&Operand{ScaleFormat: &ue4m3}).Join(codes, scales)
	require.NoError(t, err)
	require.Equal(t, []float32{0x1p-9}, x.Scales)
	_, err = (&Operand{Codes: "w", ScaleFormat: &ue4m3}).Read(&files.a) // what the type says too
	require.NoError(t, err)
	plain := tensor.Float32Scales
	_, err = (&Operand{ScaleFormat: &plain}).Join(codes, scales)
	require.ErrorContains(t, err, "it holds no scales in float32")
}

// TestMetadata follows what octavo quantize wrote.
func TestMetadata(t *testing.T) {
	path := t.TempDir() + "/f.safetensors"
	for _, test := range []struct{ outer, text string }{
		{"multiplier", `the file has no tensor "w_outer_scale", though its metadata say in octavo.outer that tensor "w" has an outer scale`},
		{"divisor", `the file has no tensor "w_outer_divisor"`},
		{"none", ""}, {"", ""}, {"none, multiplier", ""},
	} {
		require.NoError(t, safetensors.WriteFile(path, []safetensors.Tensor{
			raw("w", safetensors.F4, []int{1, 4}, 0xC2, 0x71), raw("w_scale_inv", safetensors.F8E4M3, []int{1, 1}, 0x38),
			raw("i", safetensors.U8, []int{1, 2}, 0x40, 0x80), raw("i_scale_inv", safetensors.F8E8M0, []int{1}, 127),
		}, map[string]string{OuterKey: test.outer, FormatKey: "MXINT8"}))
		files, err := (&Product{Files: []string{path}, A: Operand{Codes: "w"}, B: Operand{Codes: "i"}}).Open()
		require.NoError(t, err)
		_, err = files.A()
		if test.text == "" {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrOuter)
			require.ErrorContains(t, err, test.text)
		}
		b, err := files.B()
		require.NoError(t, err)
		require.Equal(t, []float32{1, -2}, values(t, b))
		files.Close()
	}
}

// TestByteScales reads scales that are bytes in a safetensors file as the operand or the
// metadata say.
func TestByteScales(t *testing.T) {
	e8m0, ue4m3, plain := tensor.E8M0Scales, tensor.UE4M3Scales, tensor.Float32Scales
	for _, test := range []struct {
		metadata string
		format   *tensor.ScaleFormat
		want     float32
		kind     error
	}{
		{"", nil, 0, ErrScaleFormat},
		{"float32", nil, 0, ErrScaleFormat},
		{"MXFP4", nil, 0, ErrScaleFormat},
		{"E8M0", nil, 0x1p-71, nil},
		{"ue4m3", nil, 1, nil},
		{"", &e8m0, 0x1p-71, nil},
		{"", &ue4m3, 1, nil},
		{"E8M0", &ue4m3, 1, nil},
		{"E8M0", &plain, 0, ErrScales},
	} {
		path := t.TempDir() + "/f.safetensors"
		require.NoError(t, safetensors.WriteFile(path, []safetensors.Tensor{
			raw("w", safetensors.F4, []int{1, 4}, 0xC2, 0x71), raw("w_scale_inv", safetensors.U8, []int{1, 1}, 0x38),
		}, map[string]string{ScaleFormatKey: test.metadata}))
		files, err := (&Product{Files: []string{path}, A: Operand{Codes: "w", ScaleFormat: test.format}}).Open()
		require.NoError(t, err)
		x, err := files.A()
		files.Close()
		if test.kind != nil {
			require.ErrorIs(t, err, test.kind, "%+v", test)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []float32{test.want}, x.Scales, "%+v", test)
	}
}

// TestFormatOfOne: what the metadata say of one tensor goes before what they say of the file.
func TestFormatOfOne(t *testing.T) {
	path := t.TempDir() + "/f.safetensors"
	names := []string{"own", "files", "wrong", "typed"}
	var tensors []safetensors.Tensor
	for _, name := range names {
		tensors = append(tensors, raw(name, safetensors.U8, []int{1, 1}, 0x40))
	}
	require.NoError(t, safetensors.WriteFile(path, append(tensors, raw("e5m2", safetensors.F8E5M2, []int{1, 1}, 0x40)), map[string]string{
		"octavo.format": "E5M2, MXINT8", "octavo.format.own": "E3M4", "octavo.format.wrong": "E9M9", "octavo.format.typed": "E4M3", "octavo.format.e5m2": "E3M4",
	}))
	file, err := safetensors.Open(path)
	require.NoError(t, err)
	defer file.Close()
	for name, want := range map[string]fp8.Format{"own": fp8.E3M4, "files": fp8.MXINT8, "e5m2": fp8.E5M2} {
		info, _ := file.Info(name)
		f, ok := FormatIn(file, info)
		require.True(t, ok, name)
		require.Equal(t, want, f, name)
	}
	for _, name := range []string{"wrong", "typed"} {
		info, _ := file.Info(name)
		_, ok := FormatIn(file, info)
		require.False(t, ok, name)
	}
}
