//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"syscall"
)

// takeOwner gives a file the owner and group of another. Where that is not allowed it
// stays its creator's.
func takeOwner(file *os.File, other fs.FileInfo) {
	stat, ok := other.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	uid, gid := int(stat.Uid), int(stat.Gid)
	if file.Chown(uid, gid) != nil {
		_ = file.Chown(-1, gid) // whoever is in the group may do this
	}
}
