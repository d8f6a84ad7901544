//go:build unix

package inputfile

import (
	"os"
	"syscall"
)

// openPipe opens a pipe without waiting for somebody to write to it.
func openPipe(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
