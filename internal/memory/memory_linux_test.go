package memory

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseMeminfo(t *testing.T) {
	require.Equal(t, int64(3<<10), parseMeminfo([]byte("MemTotal:        1 kB\nMemFree:  7 kB\nSwapTotal:  2 kB\nHugePages_Total: 0\n")))
	require.Zero(t, parseMeminfo([]byte("MemTotal: -\n")))
	require.Less(t, Limit(), int64(1)<<50)
}

func TestOwnLimits(t *testing.T) {
	require.Equal(t, []string{"/sys/fs/cgroup/memory.max"}, ownLimits(nil))
	require.Equal(t, []string{"/sys/fs/cgroup/memory.max"}, ownLimits([]byte("0::/\n")))
	require.Equal(t, []string{"/sys/fs/cgroup/a/b.scope/memory.max", "/sys/fs/cgroup/a/memory.max", "/sys/fs/cgroup/memory.max"},
		ownLimits([]byte("1:memory:/old\n0::/a/b.scope\n")))
}
