package tensor_test

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// packedBy is the definition: codes are digits of one large number, the first its lowest
// or its highest, and bytes are digits of the same number in the same order.
func packedBy(codes []byte, bits int, order tensor.PackOrder) []byte {
	n := (len(codes)*bits + 7) / 8
	number := new(big.Int)
	for i, c := range codes {
		at := uint(i * bits)
		if order == tensor.HighFirst {
			at = uint(n*8 - (i+1)*bits)
		}
		number.Or(number, new(big.Int).Lsh(big.NewInt(int64(c)), at))
	}
	packed := number.FillBytes(make([]byte, n))
	if order == tensor.LowFirst {
		slices.Reverse(packed)
	}
	return packed
}

func TestPackCodes(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 6))
	for bits := 1; bits <= 8; bits++ {
		for n := range 40 {
			for _, order := range []tensor.PackOrder{tensor.LowFirst, tensor.HighFirst} {
				codes := make([]byte, n)
				for i := range codes {
					codes[i] = byte(r.IntN(1 << bits))
				}
				packed := make([]byte, tensor.PackedLen(n, bits))
				require.NoError(t, tensor.PackCodes(packed, codes, bits, order))
				require.Equal(t, packedBy(codes, bits, order), packed, "%d codes of %d bits %v", n, bits, order)
				back := make([]byte, n)
				require.NoError(t, tensor.UnpackCodes(back, packed, bits, order))
				require.Equal(t, codes, back, "%d codes of %d bits %v", n, bits, order)
			}
		}
	}
}

func TestPackNibbles(t *testing.T) {
	packed := make([]byte, 2)
	require.NoError(t, tensor.PackCodes(packed, []byte{1, 2, 15}, 4, tensor.LowFirst))
	require.Equal(t, []byte{0x21, 0x0F}, packed)
	require.NoError(t, tensor.PackCodes(packed, []byte{1, 2, 15}, 4, tensor.HighFirst))
	require.Equal(t, []byte{0x12, 0xF0}, packed)
}

func TestPackErrors(t *testing.T) {
	packed := []byte{7, 7}
	err := tensor.PackCodes(packed, []byte{1, 15, 16}, 4, tensor.LowFirst)
	require.ErrorIs(t, err, tensor.ErrCode)
	require.EqualError(t, err, "tensor: code 0x10 at 2 has more than 4 bits")
	require.Equal(t, []byte{7, 7}, packed)

	codes := []byte{9, 9, 9}
	err = tensor.UnpackCodes(codes, []byte{0x21, 0x1F}, 4, tensor.LowFirst)
	require.ErrorIs(t, err, tensor.ErrCode)
	require.EqualError(t, err, "tensor: packed byte 0x1f at 1: 3 codes of 4 bits leave 4 bits of it, which are not 0")
	require.Error(t, tensor.UnpackCodes(codes, []byte{0x21, 0xF1}, 4, tensor.HighFirst))
	require.Equal(t, []byte{9, 9, 9}, codes)

	was := slices.Clone(packed)
	for message, err := range map[string]error{
		"the packed codes have 2 bytes: 2 codes of 4 bits have 1": tensor.PackCodes(packed, codes[:2], 4, tensor.LowFirst),
		"the packed codes have 1 bytes: 3 codes of 4 bits have 2": tensor.UnpackCodes(codes, packed[:1], 4, tensor.LowFirst),
		"codes of 9 bits: they must be of 1 to 8":                 tensor.UnpackCodes(codes, packed, 9, tensor.LowFirst),
		"unknown order of packed codes":                           tensor.UnpackCodes(codes, packed, 4, 2),
	} {
		require.ErrorContains(t, err, message)
	}
	require.ErrorIs(t, tensor.PackCodes(packed, codes[:2], 4, tensor.LowFirst), tensor.ErrShape)
	require.Equal(t, was, packed)
	require.Equal(t, []byte{9, 9, 9}, codes)
	require.PanicsWithValue(t, "tensor: the number of codes is negative", func() { tensor.PackedLen(-1, 4) })
}

func TestPackOrderText(t *testing.T) {
	for _, o := range []tensor.PackOrder{tensor.LowFirst, tensor.HighFirst} {
		text, err := o.MarshalText()
		require.NoError(t, err)
		var back tensor.PackOrder
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, o, back)
	}
	require.ErrorIs(t, new(tensor.PackOrder).UnmarshalText([]byte("x")), tensor.ErrCode)
}

func TestScaleFormatText(t *testing.T) {
	for f, name := range []string{"float32", "E8M0", "UE4M3"} {
		parsed, err := tensor.ParseScaleFormat(name)
		require.NoError(t, err)
		require.Equal(t, tensor.ScaleFormat(f), parsed)
		require.Equal(t, name, parsed.String())
		require.Equal(t, f > 0, parsed.Encoded())
	}
	_, err := tensor.ParseScaleFormat("bf16")
	require.ErrorIs(t, err, tensor.ErrScale)
	require.False(t, tensor.ScaleFormat(3).Valid())
}

// TestCheckCodes looks at codes of eight bits, all of which are right.
func TestCheckCodes(t *testing.T) {
	x := &tensor.Tensor{Name: "w", Format: fp8.E5M2, Shape: []int{2, 2}, Codes: []byte{0, 255, 16, 128}, Scales: []float32{1}}
	require.NoError(t, x.CheckCodes())
	x.Codes = x.Codes[:3]
	require.ErrorIs(t, x.CheckCodes(), tensor.ErrShape)
}

// TestCheckNarrowCodes: bits above a format's, which decoding ignores, are found.
func TestCheckNarrowCodes(t *testing.T) {
	x := &tensor.Tensor{Name: "w", Format: fp8.E2M1, Shape: []int{2, 2}, Codes: []byte{15, 0, 7, 0x1A}, Scales: []float32{1}}
	require.ErrorIs(t, x.CheckCodes(), tensor.ErrCode)
	require.EqualError(t, x.CheckCodes(), `tensor "w": code 0x1a at (1, 1) has more than the 4 bits of E2M1`)
	require.Equal(t, fp8.E2M1.Float32(0xA), x.At(1, 1))
	x.Format = fp8.E3M2
	require.NoError(t, x.CheckCodes())
}
