package memory

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseMeminfo(t *testing.T) {
	require.Equal(t, int64(3<<10), parseMeminfo([]byte("MemTotal:        1 kB\nMemFree:  7 kB\nSwapTotal:  2 kB\nHugePages_Total: 0\n")))
	require.Zero(t, parseMeminfo([]byte("MemTotal: -\n")))
	require.Less(t, Total(), int64(1)<<50)
}
