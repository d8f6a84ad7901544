package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// atOffset is a file whose tensor x, the bytes 1 to 24, lies at an offset of the
// given remainder by 8.
func atOffset(t *testing.T, d DType, remainder int) *File {
	n := 24 / d.Size()
	header := fmt.Sprintf(`{"x":{"dtype":"%s","shape":[%d],"data_offsets":[0,24]}}`, d, n)
	for len(header)%8 != remainder {
		header += " "
	}
	file := assemble(header, 24)
	for i := range 24 {
		file[len(file)-24+i] = byte(i + 1)
	}
	f, err := read(file)
	require.NoError(t, err)
	return f
}

// checkElements compares every part of x, and all of it, with its bytes.
func checkElements[T Element](t *testing.T, f *File, valueOf func([]byte) T) {
	data, err := f.Bytes("x")
	require.NoError(t, err)
	unit := sizeOf[T]()
	var want []T
	for at := 0; at < len(data); at += unit {
		want = append(want, valueOf(data[at:]))
	}
	whole, err := Elements[T](f, "x")
	require.NoError(t, err)
	require.Equal(t, want, whole)
	for lo := range len(want) + 1 {
		for hi := lo; hi <= len(want); hi++ {
			const guard = 7
			got := slices.Repeat([]T{guard}, hi-lo+2)
			require.NoError(t, ReadElements(f, "x", int64(lo), got[1:1+hi-lo]))
			require.Equal(t, append(append([]T{guard}, want[lo:hi]...), guard), got)
		}
	}
}

type half uint16

func TestElements(t *testing.T) {
	le := binary.LittleEndian
	for remainder := range 8 {
		checkElements(t, atOffset(t, U8, remainder), func(b []byte) uint8 { return b[0] })
		checkElements(t, atOffset(t, I8, remainder), func(b []byte) int8 { return int8(b[0]) })
		checkElements(t, atOffset(t, BF16, remainder), func(b []byte) half { return half(le.Uint16(b)) })
		checkElements(t, atOffset(t, F16, remainder), le.Uint16)
		checkElements(t, atOffset(t, I32, remainder), func(b []byte) int32 { return int32(le.Uint32(b)) })
		checkElements(t, atOffset(t, F32, remainder), func(b []byte) float32 { return math.Float32frombits(le.Uint32(b)) })
		checkElements(t, atOffset(t, F64, remainder), func(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) })
		checkElements(t, atOffset(t, C64, remainder), func(b []byte) complex64 {
			return complex(math.Float32frombits(le.Uint32(b)), math.Float32frombits(le.Uint32(b[4:])))
		})
	}
}

// TestElementsOnBigEndian reads as a machine of the other byte order does: each
// element comes out reversed.
func TestElementsOnBigEndian(t *testing.T) {
	defer func(before bool) { bigEndian = before }(bigEndian)
	bigEndian = !bigEndian
	be := binary.BigEndian
	checkElements(t, atOffset(t, U8, 1), func(b []byte) uint8 { return b[0] })
	checkElements(t, atOffset(t, F16, 1), be.Uint16)
	checkElements(t, atOffset(t, F32, 1), func(b []byte) float32 { return math.Float32frombits(be.Uint32(b)) })
	checkElements(t, atOffset(t, U64, 1), be.Uint64)
	checkElements(t, atOffset(t, C64, 1), func(b []byte) complex64 {
		return complex(math.Float32frombits(be.Uint32(b)), math.Float32frombits(be.Uint32(b[4:])))
	})
}

func TestReverseEach(t *testing.T) {
	for unit, want := range map[int]string{1: "abcdefgh", 2: "badcfehg", 4: "dcbahgfe", 8: "hgfedcba"} {
		data := []byte("abcdefgh")
		reverseEach(data, unit)
		require.Equal(t, want, string(data))
		reverseEach(nil, unit)
	}
}

func TestByteOrderOfThisMachine(t *testing.T) {
	values := []uint32{0x01020304}
	little := bytesOf(values)[0] == 4
	require.Equal(t, !little, bigEndian)
}

func TestElementsErrors(t *testing.T) {
	f := atOffset(t, F32, 3)
	_, err := Elements[float64](f, "x")
	require.EqualError(t, err, `safetensors: tensor "x" is F32: its elements do not have 8 bytes`)
	require.EqualError(t, ReadElements(f, "x", 0, []int8{}), `safetensors: tensor "x" is F32: its elements do not have 1 bytes`)
	_, err = Elements[complex64](atOffset(t, F64, 0), "x")
	require.EqualError(t, err, `safetensors: tensor "x" is F64: complex64 holds elements of C64 and no others`)
	require.EqualError(t, ReadElements(atOffset(t, C64, 0), "x", 0, []float64{}), `safetensors: tensor "x" is C64: complex64 holds elements of C64 and no others`)
	narrow, err := read(validFiles["narrow"])
	require.NoError(t, err)
	_, err = Elements[uint8](narrow, "w")
	require.EqualError(t, err, `safetensors: tensor "w" is F4: its elements do not have 1 bytes`)
	_, err = Elements[int8](f, "y")
	require.EqualError(t, err, `safetensors: there is no tensor "y"`)
	require.EqualError(t, ReadElements(f, "y", 0, []int8{}), `safetensors: there is no tensor "y"`)
	require.EqualError(t, f.ReadBytes("y", 0, nil), `safetensors: there is no tensor "y"`)

	dst := []float32{9, 9}
	for _, first := range []int64{-1, 5, 6, math.MaxInt64, math.MinInt64} {
		err := ReadElements(f, "x", first, dst)
		require.EqualError(t, err, fmt.Sprintf(`safetensors: tensor "x": elements [%d, %d) are not all among its 6`, first, first+2))
	}
	require.Equal(t, []float32{9, 9}, dst)
	for _, off := range []int64{-1, 23, 24, math.MaxInt64, math.MinInt64} {
		err := f.ReadBytes("x", off, make([]byte, 2))
		require.EqualError(t, err, fmt.Sprintf(`safetensors: tensor "x": 2 bytes at %d are not all among its 24`, off))
	}
	require.NoError(t, ReadElements(f, "x", 6, dst[:0]))
	require.NoError(t, f.ReadBytes("x", 24, nil))
}

func TestReadBytes(t *testing.T) {
	f := atOffset(t, F32, 5)
	data, err := f.Bytes("x")
	require.NoError(t, err)
	for lo := range 25 {
		for hi := lo; hi <= 24; hi++ {
			got := make([]byte, hi-lo)
			require.NoError(t, f.ReadBytes("x", int64(lo), got))
			require.True(t, bytes.Equal(data[lo:hi], got))
		}
	}
}

func TestElementsOfFileThatShrank(t *testing.T) {
	header := `{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"F32","shape":[4],"data_offsets":[3,19]}}`
	file := assemble(header, 19)
	f, err := NewReader(strings.NewReader(string(file[:len(file)-5])), int64(len(file)))
	require.NoError(t, err)
	require.NoError(t, ReadElements(f, "b", 0, make([]float32, 2)))
	err = ReadElements(f, "b", 1, make([]float32, 3))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.EqualError(t, err, `safetensors: tensor "b": reading 12 of its 16 bytes at data offset 7: unexpected EOF`)
	require.EqualError(t, f.ReadBytes("b", 11, make([]byte, 1)),
		`safetensors: tensor "b": reading 1 of its 16 bytes at data offset 14: unexpected EOF`)
	_, err = Elements[float32](f, "b")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// TestReadElementsAllocates checks that what it allocates does not depend on how
// much is read.
func TestReadElementsAllocates(t *testing.T) {
	f, err := read(assemble(`{"x":{"dtype":"F32","shape":[100000],"data_offsets":[0,400000]}}`, 400000))
	require.NoError(t, err)
	dst := make([]float32, 100000)
	few := testing.AllocsPerRun(10, func() { _ = ReadElements(f, "x", 0, dst[:1]) })
	all := testing.AllocsPerRun(10, func() { _ = ReadElements(f, "x", 0, dst) })
	require.Equal(t, few, all)
	require.LessOrEqual(t, all, 1.0)
}
