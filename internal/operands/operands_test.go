package operands

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// floats are the bytes of values in float32.
func floats(values ...float32) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// npyFile is an array as NumPy saves it.
func npyFile(descr string, shape []int, data []byte) []byte {
	var dims strings.Builder
	for _, d := range shape {
		fmt.Fprintf(&dims, "%d, ", d)
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n", descr, dims.String())
	b := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	return append(append(b, header...), data...)
}

// layer writes the same product in three ways, and returns what says where it is.
func layer(t *testing.T) map[string]Product {
	codesA, codesB := []byte{0x38, 0x40, 0xB8, 0, 0x30, 0x38, 1, 2}, []byte{0x3C, 0x40, 0, 0xBC}
	scalesA, scalesB := floats(1, 2, 0.5, 4), floats(3)
	c, bias := floats(1, 2), floats(7)
	dir := t.TempDir()
	put := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o666))
		return path
	}
	e4m3, e5m2 := fp8.E4M3, fp8.E5M2
	block := tensor.Block{Rows: 1, Cols: 2}
	file := write(t,
		raw("x", safetensors.F8E4M3, []int{2, 4}, codesA...), raw("x_scale_inv", safetensors.F32, []int{2, 2}, scalesA...),
		raw("w", safetensors.F8E5M2, []int{1, 4}, codesB...), raw("s", safetensors.F32, []int{1}, scalesB...),
		raw("c", safetensors.F32, []int{2, 1}, c...), raw("bias", safetensors.F32, []int{1}, bias...))
	return map[string]Product{
		"safetensors": {Files: []string{file}, A: Operand{Codes: "x", Block: &block}, B: Operand{Codes: "w", Scales: "s"}, Bias: "bias", Accumulate: "c", Got: file},
		"npy": {
			A:    Operand{Codes: put("a.npy", npyFile("|u1", []int{2, 4}, codesA)), Scales: put("as.npy", npyFile("<f4", []int{2, 2}, scalesA)), Format: &e4m3, Block: &block},
			B:    Operand{Codes: put("b.npy", npyFile("|u1", []int{1, 4}, codesB)), Scales: put("bs.npy", npyFile("<f4", nil, scalesB)), Format: &e5m2},
			Bias: put("bias.npy", npyFile("<f4", []int{1}, bias)), Accumulate: put("old.npy", npyFile("<f4", []int{2, 1}, c)), Got: put("c.npy", npyFile("<f4", []int{2, 1}, c)),
		},
		"raw": {
			A:    Operand{Codes: put("a.bin", codesA) + ":e4m3:2x4", Scales: put("as.bin", scalesA) + ":f32:2x2", Block: &block},
			B:    Operand{Codes: put("b.bin", codesB) + ":F8_E5M2:1x4", Scales: put("bs.bin", scalesB) + ":F32:1"},
			Bias: put("bias.bin", bias) + ":f32:1", Accumulate: put("old.bin", c) + ":f32:2x1", Got: put("c.bin", c) + ":f32:2x1",
		},
	}
}

// TestProduct reads the same from files of all kinds.
func TestProduct(t *testing.T) {
	for kind, p := range layer(t) {
		t.Run(kind, func(t *testing.T) {
			files, err := p.Open()
			require.NoError(t, err)
			defer files.Close()
			a, err := files.A()
			require.NoError(t, err)
			require.Equal(t, fp8.E4M3, a.Format)
			require.Equal(t, []byte{0x38, 0x40, 0xB8, 0, 0x30, 0x38, 1, 2}, a.Codes)
			require.Equal(t, []float32{1, 2, 0.5, 4}, a.Scales)
			require.Equal(t, tensor.Block{Rows: 1, Cols: 2}, a.Block)
			b, err := files.B()
			require.NoError(t, err)
			require.Equal(t, fp8.E5M2, b.Format)
			require.Equal(t, []int{1, 4}, b.Shape)
			require.Equal(t, []float32{3}, b.Scales)
			bias, err := files.Bias(1)
			require.NoError(t, err)
			require.Equal(t, []float32{7}, bias)
			old, err := files.Old(a, b)
			require.NoError(t, err)
			c, err := files.Result(a, b)
			require.NoError(t, err)
			for _, x := range []Tensor{old, c} {
				values, err := safetensors.Elements[float32](x.File, x.Name)
				require.NoError(t, err)
				require.Equal(t, []float32{1, 2}, values)
			}
			_, err = files.Bias(2)
			require.ErrorIs(t, err, ErrResult)
			_, err = files.Result(b, a)
			require.ErrorIs(t, err, ErrResult)
			_, err = files.Old(b, a)
			require.ErrorIs(t, err, ErrResult)
		})
	}
}

// TestRawNames tells files of raw bytes from tensors and from arrays.
func TestRawNames(t *testing.T) {
	for name, want := range map[string]string{
		"x.bin:F32:64x128": "x.bin", "x:u8:0": "x", `C:\x.bin:bf16:1x2x3`: `C:\x.bin`, "a:b:E4M3FNUZ:7": "a:b", "x.npy": "x.npy", "x:E8M0:4": "x", "x:UE4M3:4": "x", "x:F4:4": "x", "x:e2m1:4": "x", "x:E3M2:4": "x", "x:C64:4": "x", "x:MXINT8:4": "",
		"x": "", "": "", "x.bin:F32": "", "x.bin:F33:2": "", ":F32:2": "", "x:F32:": "", "x:F32:2x": "", "x:F32:-1": "", "model:layers:0": "", "x:F32:99999999999999999999": "",
	} {
		path, ok := Path(name)
		require.Equal(t, want != "", ok, name)
		if ok {
			require.Equal(t, want, path)
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "x.bin")
	require.NoError(t, os.WriteFile(path, make([]byte, 12), 0o666))
	var s Source
	x, err := s.Find(path + ":f32:3")
	require.NoError(t, err)
	require.Equal(t, safetensors.F32, x.DType)
	require.Equal(t, []int{3}, x.Shape)
	_, err = s.Find(path + ":f32:4")
	require.ErrorContains(t, err, "x.bin has 12 bytes: F32 of shape [4] has 16")
	_, err = s.Find(path + ":f32:2147483647x2147483647x2147483647")
	require.ErrorContains(t, err, "x.bin has 12 bytes")
	_, err = s.Find(path + "y:f32:3")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = s.Find("y")
	require.ErrorIs(t, err, ErrName)
}

// TestErrors are told apart.
func TestErrors(t *testing.T) {
	file := write(t,
		raw("x", safetensors.F8E4M3, []int{2, 4}, make([]byte, 8)...), raw("x_scale_inv", safetensors.F32, []int{2, 2}, floats(1, 1, 1, 1)...),
		raw("u", safetensors.U8, []int{2, 4}, make([]byte, 8)...), raw("u_scale_inv", safetensors.U8, []int{2, 2}, 1, 1, 1, 1),
		raw("f", safetensors.F32, []int{2}, make([]byte, 8)...), raw("i", safetensors.I32, []int{2}, make([]byte, 8)...),
		raw("across", safetensors.F32, []int{1, 4}, floats(1, 1, 1, 1)...),
		raw("three", safetensors.F32, []int{3}, floats(1, 1, 1)...), raw("n", safetensors.U16, []int{2, 2}, make([]byte, 8)...))
	p := Product{Files: []string{file}, Got: file}
	files, err := p.Open()
	require.NoError(t, err)
	defer files.Close()
	e5m2 := fp8.E5M2
	square := tensor.Block{Rows: 1, Cols: 2}
	for _, test := range []struct {
		o    Operand
		kind error
		text string
	}{
		{Operand{Codes: "none"}, ErrName, `operands: the file has no tensor "none"`},
		{Operand{Codes: "f"}, ErrFloats, `operands: tensor "f" is F32 and no codes`},
		{Operand{Codes: "i"}, ErrCodes, `want F8_E4M3, F8_E5M2, F8_E4M3FNUZ, F8_E5M2FNUZ, F4, F6_E2M3 or F6_E3M2`},
		{Operand{Codes: "u"}, ErrFormat, `tensor "u" is U8, which does not say a format`},
		{Operand{Codes: "x", Format: &e5m2}, ErrFormat, `tensor "x" is F8_E4M3 and not F8_E5M2`},
		{Operand{Codes: "x", Scales: "three"}, ErrBlock, `has scales of shape [3], "three": no usual block fits: say which it is`},
		{Operand{Codes: "x", Scales: "none"}, ErrName, `no tensor "none"`},
		{Operand{Codes: "u", Format: &e5m2}, ErrScaleFormat, `tensor "u_scale_inv" is U8, which does not say a format of scales`},
		{Operand{Codes: "x", Scales: "i"}, ErrScales, `tensor "i" is I32: scales are F32, F8_E8M0 or F8_E4M3`},
		{Operand{Codes: "x", Block: &tensor.Block{Rows: 1, Cols: 1}}, tensor.ErrShape, `in tensor "x_scale_inv"`},
		{Operand{Codes: "x", Scales: "across", Block: &square}, tensor.ErrShape, `does not hold the scales of tensor "x": in blocks of 1x2 they are a grid of 2x2`},
	} {
		_, err := test.o.Read(&files.a)
		require.ErrorIs(t, err, test.kind, "%+v", test.o)
		require.ErrorContains(t, err, test.text)
	}
	x := &tensor.Tensor{Shape: []int{2, 4}}
	p.C = "n"
	_, err = files.Result(x, x)
	require.ErrorIs(t, err, ErrUint16)
	p.C = "i"
	_, err = files.Result(x, x)
	require.ErrorIs(t, err, ErrResult)
	p.C = ""
	_, err = files.Result(x, x)
	require.ErrorIs(t, err, ErrName)
	require.ErrorContains(t, err, "has 9 tensors and none is called c")

	_, err = (&Product{Files: []string{file + "no"}}).Open()
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = (&Product{Files: []string{file}, Got: file + "no"}).Open()
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = (&Product{Files: []string{file, file, file}}).Open()
	require.ErrorContains(t, err, "3 files: want two at most")
}

// TestInMemory joins what was never in a file; bytes are E8M0 scales.
func TestInMemory(t *testing.T) {
	codes, err := InMemory(raw("codes", safetensors.U8, []int{1, 2}, 0x38, 0x40))
	require.NoError(t, err)
	scales, err := InMemory(raw("scales", safetensors.U8, []int{1}, 128))
	require.NoError(t, err)
	e4m3 := fp8.E4M3
	x, err := (&Operand{Format: &e4m3}).Join(codes, scales)
	require.NoError(t, err)
	require.Equal(t, []float32{2}, x.Scales)
	require.Equal(t, float32(4), x.At(0, 1))
	_, err = InMemory(raw("short", safetensors.F32, []int{3}, 1, 2))
	require.ErrorContains(t, err, "operands: ")
}

// FuzzRead demands that no file, nor any name, is more than an error.
func FuzzRead(f *testing.F) {
	f.Add(npyFile("|u1", []int{2, 4}, make([]byte, 8)), ":u8:2x4", "x", uint8(0))
	f.Add([]byte("\x08\x00\x00\x00\x00\x00\x00\x00{}      "), ":e4m3:16", "c", uint8(1))
	f.Add(make([]byte, 8), ":F32:2", "", uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, suffix, name string, kind uint8) {
		path := filepath.Join(t.TempDir(), "x.npy")
		require.NoError(t, os.WriteFile(path, data, 0o666))
		e4m3 := fp8.E4M3
		p := Product{A: Operand{Codes: path, Scales: path, Format: &e4m3}, Got: path + suffix, Bias: path, Accumulate: path}
		switch kind % 3 {
		case 1:
			p.A = Operand{Codes: path + suffix, Scales: path + suffix}
		case 2:
			p.Files, p.Got, p.C, p.A = []string{path}, path, name, Operand{Codes: name}
		}
		files, err := p.Open()
		if err != nil {
			return
		}
		defer files.Close()
		a, err := files.A()
		if err == nil {
			require.NoError(t, a.Check())
			_, _ = files.Result(a, a)
			_, _ = files.Old(a, a)
		}
		_, _ = files.Bias(len(data) / 4)
	})
}
