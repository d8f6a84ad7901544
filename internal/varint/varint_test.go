package varint

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestForm(t *testing.T) {
	nan := math.Float32frombits(0xFFC12345)
	data := AppendFloats(AppendPart(Append(nil, 300), "ab"), []float32{1, nan})
	require.Equal(t, []byte{0xAC, 0x02, 2, 'a', 'b', 0, 0, 0x80, 0x3F, 0, 0, 0xC0, 0x7F}, data)
	r := Reader{Data: data}
	require.Equal(t, 300, r.Int())
	require.Equal(t, "ab", string(r.Part()))
	values := Floats[float32](&r, 1, 2)
	require.Equal(t, float32(1), values[0])
	require.True(t, values[1] != values[1])
	require.False(t, r.Failed)
	require.Empty(t, r.Data)
}

func TestDamage(t *testing.T) {
	for _, read := range []func(r *Reader){
		func(r *Reader) { r.Data = nil; r.Int() },
		func(r *Reader) { r.Data = []byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}; r.Int() }, // 2^64-1
		func(r *Reader) { r.Data = []byte{3, 1, 1}; r.Part() },
		func(r *Reader) { r.Data = []byte{3, 1, 1}; r.Count() },
		func(r *Reader) { Floats[float32](r, 1, 2) },
		func(r *Reader) { Floats[float32](r, math.MaxInt, math.MaxInt) },
	} {
		r := Reader{Data: make([]byte, 7)}
		read(&r)
		require.True(t, r.Failed)
		require.Zero(t, r.Uint64())
		require.Nil(t, r.Bytes(0))
		require.Nil(t, Floats[float32](&r, 0, 0))
	}
}
