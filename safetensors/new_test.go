package safetensors

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNew: elements are little-endian in a tensor, which keeps them when the slice changes, and
// a shape of another size is refused when the file is written.
func TestNew(t *testing.T) {
	type half uint16
	values, halves, codes := []float32{1, -2, 0.5}, []half{0x3F80, 0x1234}, []byte{7, 8}
	tensors := []Tensor{
		New("x", F32, []int{3}, values), New("h", BF16, []int{2, 1}, halves), New("c", F8E4M3, []int{2}, codes), New("none", F32, []int{0}, []float32(nil)),
	}
	require.Equal(t, []byte{0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0, 0, 0, 0, 0x3F}, tensors[0].Data)
	require.Equal(t, []byte{0x80, 0x3F, 0x34, 0x12}, tensors[1].Data)
	values[0], codes[0] = 9, 9
	data, err := Encode(tensors, nil)
	require.NoError(t, err)
	f, err := NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	x, err := Elements[float32](f, "x")
	require.NoError(t, err)
	require.Equal(t, []float32{1, -2, 0.5}, x)
	h, err := Elements[half](f, "h")
	require.NoError(t, err)
	require.Equal(t, halves, h)
	c, err := f.Bytes("c")
	require.NoError(t, err)
	require.Equal(t, []byte{7, 8}, c)

	_, err = Encode([]Tensor{New("x", F32, []int{2}, values)}, nil)
	require.ErrorContains(t, err, `"x"`)
}
