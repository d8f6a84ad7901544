package memory

import (
	"math"
	"runtime/debug"
	"testing"

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

// TestUseLargePages has memory of all sizes about a page's, which stays as it is.
func TestUseLargePages(t *testing.T) {
	for _, n := range []int{0, 1, 4<<20 - 1, 4 << 20, 7<<20 + 123} {
		b := make([]byte, n+2)
		UseLargePages(b[1:][:n])
		for i := range b {
			b[i] = byte(i * 7)
		}
		for i, x := range b {
			if x != byte(i*7) {
				t.Fatalf("%d bytes: byte %d is %d", n, i, x)
			}
		}
	}
}
