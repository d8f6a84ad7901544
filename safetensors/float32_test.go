package safetensors

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// readFloat32s returns what Float32s makes of a vector of type d with this data.
func readFloat32s(t *testing.T, d DType, data []byte) []float32 {
	var file bytes.Buffer
	w, err := NewWriter(&file, []Info{{Name: "x", DType: d, Shape: []int{len(data) / d.Size()}}}, nil)
	require.NoError(t, err)
	require.NoError(t, w.Next("x"))
	_, err = w.Write(data)
	require.NoError(t, err)
	f, err := read(file.Bytes())
	require.NoError(t, err)
	values, err := f.Float32s("x")
	require.NoError(t, err)
	return values
}

func TestFloat32sValues(t *testing.T) {
	inf := float32(math.Inf(1))
	le := binary.LittleEndian

	require.Equal(t, []float32{1, -2.5}, readFloat32s(t, F32, le.AppendUint32(le.AppendUint32(nil, 0x3f800000), 0xc0200000)))

	var halves []byte
	for _, b := range []uint16{0x3c00, 0xc100, 0x7bff, 0x0001, 0x7c00, 0xfc00} {
		halves = le.AppendUint16(halves, b)
	}
	require.Equal(t, []float32{1, -2.5, 65504, 0x1p-24, inf, -inf}, readFloat32s(t, F16, halves))

	var brains []byte
	for _, b := range []uint16{0x3f80, 0xc020, 0x7f7f, 0x0001, 0x7f80, 0xff80} {
		brains = le.AppendUint16(brains, b)
	}
	require.Equal(t, []float32{1, -2.5, 0x1.fep127, 0x1p-133, inf, -inf}, readFloat32s(t, BF16, brains))

	var doubles []byte
	for _, v := range []float64{1, -2.5, 1 + 0x1p-24, 1 + 0x3p-24, 1e39, -1e39, 0x1p-150, 0x1.8p-150} {
		doubles = le.AppendUint64(doubles, math.Float64bits(v))
	}
	require.Equal(t, []float32{1, -2.5, 1, 1 + 0x1p-22, inf, -inf, 0, 0x1p-149}, readFloat32s(t, F64, doubles))
}

func TestFloat32sKeepsNaNAndNegativeZero(t *testing.T) {
	for d, codes := range map[DType]string{
		F32:  "\x00\x00\xc0\x7f\x00\x00\x00\x80",
		F16:  "\x00\x7e\x00\x80",
		BF16: "\xc0\x7f\x00\x80",
		F64:  "\x00\x00\x00\x00\x00\x00\xf8\x7f\x00\x00\x00\x00\x00\x00\x00\x80",
	} {
		got := readFloat32s(t, d, []byte(codes))
		require.True(t, math.IsNaN(float64(got[0])), d)
		require.Equal(t, uint32(0x80000000), math.Float32bits(got[1]), d)
	}
}

func TestFloat32sAcrossChunks(t *testing.T) {
	for _, n := range []int{0, 1, chunkElements - 1, chunkElements, chunkElements + 1, 3*chunkElements + 7} {
		data := make([]byte, 0, 4*n)
		for i := range n {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i)))
		}
		got := readFloat32s(t, F32, data)
		require.Len(t, got, n)
		for i, v := range got {
			if v != float32(i) {
				t.Fatalf("n=%d: element %d is %v", n, i, v)
			}
		}
	}
}

func TestFloat32sRefusesOtherTypes(t *testing.T) {
	for _, d := range allDTypes {
		if d == F32 || d == F16 || d == BF16 || d == F64 {
			continue
		}
		var file bytes.Buffer
		_, err := NewWriter(&file, []Info{{Name: "x", DType: d, Shape: []int{0}}}, nil)
		require.NoError(t, err)
		f, err := read(file.Bytes())
		require.NoError(t, err)
		_, err = f.Float32s("x")
		require.EqualError(t, err, `safetensors: tensor "x" is `+string(d)+`: only F32, F16, BF16 and F64 can be read as float32`)
	}
}
