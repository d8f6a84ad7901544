package memory

import (
	"math"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestCheck: what GOMEMLIMIT has set counts, and the error says all numbers.
func TestCheck(t *testing.T) {
	require.Greater(t, Limit(), int64(1<<20))
	require.NoError(t, Check(0, 8, "", ""))
	require.NoError(t, Check(1<<17, 8, "", ""))
	require.ErrorContains(t, Check(-1, 1, "it all", "take less"), "it all does not fit in memory: it takes more than 8 EiB, and this machine or its container has ")
	require.ErrorContains(t, Check(math.MaxInt64, 8, "it all", "take less"), "more than 8 EiB")
	require.ErrorContains(t, Check(1<<60, 1, "it all", "take less"), "it takes 1 EiB, and")
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 29))
	require.Equal(t, int64(1<<29), Limit())
	require.NoError(t, Check(1<<26, 8, "", ""))
	require.EqualError(t, Check(3<<26, 8, "it all", "take less"), "it all does not fit in memory: it takes 1.5 GiB, and GOMEMLIMIT allows 512 MiB: take less")
}

// TestLarge has memory of all sizes about a page's, which is zeros, begins at a page where it
// takes more than one, and keeps what is written to it.
func TestLarge(t *testing.T) {
	testLarge[byte](t)
	testLarge[uint16](t)
	testLarge[float32](t)
}

func testLarge[T uint8 | uint16 | float32](t *testing.T) {
	size := int(unsafe.Sizeof(T(0)))
	for _, n := range []int{0, 1, 2<<20/size - 1, 2 << 20 / size, 2<<20/size + 1, 7<<20/size + 123} {
		s := Large[T](n)
		require.Len(t, s, n)
		require.Equal(t, n, cap(s))
		if n*size > 2<<20 {
			require.Zero(t, uintptr(unsafe.Pointer(&s[0]))%(2<<20), "%d of %d bytes", n, size)
		}
		for i, x := range s {
			if x != 0 {
				t.Fatalf("%d of %d bytes: element %d is %v", n, size, i, x)
			}
			s[i] = T(i % 251)
		}
		for i, x := range s {
			if x != T(i%251) {
				t.Fatalf("%d of %d bytes: element %d is %v", n, size, i, x)
			}
		}
	}
}
