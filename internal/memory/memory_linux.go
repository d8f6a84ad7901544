package memory

import (
	"bufio"
	"bytes"
	"os"
	"path"
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
	own, _ := os.ReadFile("/proc/self/cgroup")
	for _, name := range append(ownLimits(own), "/sys/fs/cgroup/memory/memory.limit_in_bytes") {
		limit, err := os.ReadFile(name)
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

// ownLimits returns the files of the limits of the control group, of version 2, that
// /proc/self/cgroup names, and of those that it is in.
func ownLimits(text []byte) (paths []string) {
	dir := "/"
	for line := range strings.Lines(string(text)) {
		if own, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			dir = path.Join("/", own)
		}
	}
	for ; ; dir = path.Dir(dir) {
		paths = append(paths, path.Join("/sys/fs/cgroup", dir, "memory.max"))
		if dir == "/" {
			return paths
		}
	}
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
