package memory

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
)

// total is what /proc/meminfo has or what control groups allow, if that is less.
func total() int64 {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	n := parseMeminfo(info)
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		limit, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// Without a limit it is "max" or a number larger than any memory.
		if bytes, err := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64); err == nil && bytes > 0 {
			n = min(n, bytes)
		}
	}
	return n
}

// parseMeminfo returns the memory and swap that /proc/meminfo has, in bytes.
func parseMeminfo(text []byte) (total int64) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && (fields[0] == "MemTotal:" || fields[0] == "SwapTotal:") && fields[2] == "kB" {
			if n, err := strconv.ParseInt(fields[1], 10, 53); err == nil {
				total += n << 10
			}
		}
	}
	return total
}
