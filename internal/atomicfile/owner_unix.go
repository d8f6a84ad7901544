//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"syscall"
)

// takeOwner gives a file the owner and group of another. Where that is not allowed it
// stays its creator's. It reports whether it has the group.
func takeOwner(file *os.File, other fs.FileInfo) (group bool) {
	stat, ok := other.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	uid, gid := int(stat.Uid), int(stat.Gid)
	return file.Chown(uid, gid) == nil || file.Chown(-1, gid) == nil // whoever is in the group may do the latter
}
