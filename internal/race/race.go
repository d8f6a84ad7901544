//go:build race

// Package race tells the race detector what assembly reads and writes, which it
// does not see. Without the detector its functions do nothing.
package race

import (
	"runtime"
	"unsafe"
)

// Enabled is whether the detector runs.
const Enabled = true

// Read says that s is read.
func Read[T any](s []T) {
	if len(s) > 0 {
		runtime.RaceReadRange(unsafe.Pointer(&s[0]), len(s)*int(unsafe.Sizeof(s[0])))
	}
}

// Write says that s is written.
func Write[T any](s []T) {
	if len(s) > 0 {
		runtime.RaceWriteRange(unsafe.Pointer(&s[0]), len(s)*int(unsafe.Sizeof(s[0])))
	}
}
