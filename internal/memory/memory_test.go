package memory

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFits(t *testing.T) {
	require.Greater(t, Total(), int64(1<<20))
	require.True(t, Fits(0, 8))
	require.True(t, Fits(1<<17, 8))
	require.False(t, Fits(-1, 1))
	require.False(t, Fits(math.MaxInt64, 1))
	require.False(t, Fits(math.MaxInt64, 8))
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
