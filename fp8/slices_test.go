package fp8_test

import (
	"bytes"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
)

const shortDestination = "fp8: destination shorter than source"

// A generic test runs for each of the four types.
func forEachType(t *testing.T, f32, f64, f16, bf16 func(t *testing.T)) {
	t.Run("float32", f32)
	t.Run("float64", f64)
	t.Run("float16", f16)
	t.Run("bfloat16", bf16)
}

func TestShortDestination(t *testing.T) {
	forEachType(t, testShort[float32], testShort[float64], testShort[float16.Float16], testShort[fp8.BFloat16])
}

func testShort[T fp8.Float](t *testing.T) {
	for _, length := range []int{0, 1, 7} {
		src := make([]T, length+1)
		for i := range src {
			src[i] = 1
		}
		sentinel := bytes.Repeat([]byte{0xA5}, length+1)
		dst := bytes.Clone(sentinel)
		st := fp8.Stats{}
		require.PanicsWithValue(t, shortDestination, func() {
			fp8.Encode(dst[:length], src, fp8.E4M3, fp8.Policy{}, &st)
		})
		require.PanicsWithValue(t, shortDestination, func() {
			fp8.EncodeScaled(dst[:length], src, fp8.E4M3, fp8.Policy{}, fp8.Scale{Stored: 2}, 1, &st)
		})
		require.Equal(t, sentinel, dst)
		require.Equal(t, fp8.Stats{}, st)

		codes := bytes.Repeat([]byte{0x38}, length+1)
		values := make([]T, length+1)
		require.PanicsWithValue(t, shortDestination, func() { fp8.Decode(values[:length], codes, fp8.E4M3) })
		require.PanicsWithValue(t, shortDestination, func() { fp8.DecodeScaled(values[:length], codes, fp8.E4M3, 2) })
		require.Equal(t, make([]T, length+1), values)
	}
}

func TestLongDestination(t *testing.T) {
	forEachType(t, testLong[float32], testLong[float64], testLong[float16.Float16], testLong[fp8.BFloat16])
}

func testLong[T fp8.Float](t *testing.T) {
	for _, length := range []int{0, 1, 7, 33} {
		dst := bytes.Repeat([]byte{0xA5}, length+2)
		fp8.Encode(dst, make([]T, length), fp8.E4M3, fp8.Policy{}, nil)
		require.Equal(t, append(make([]byte, length), 0xA5, 0xA5), dst)

		want := make([]T, length+2)
		want[length], want[length+1] = 7, 9
		values := append(make([]T, length), 7, 9)
		fp8.Decode(values, make([]byte, length), fp8.E4M3)
		require.Equal(t, want, values)
		fp8.DecodeScaled(values, make([]byte, length), fp8.E4M3, 3)
		require.Equal(t, want, values)
	}
	fp8.Encode(nil, []T(nil), fp8.E4M3, fp8.Policy{}, nil)
	fp8.Decode([]T(nil), nil, fp8.E4M3)
}
