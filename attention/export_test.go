package attention

import (
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/internal/microkernel/dotstest"
)

// EmulateDots uses micro-kernels with dot products in plain Go for any number of rows, until
// restore.
func EmulateDots() (restore func()) {
	before := dotsFor
	dotsFor = func(int) *microkernel.Kernels { return &dotstest.Kernels }
	return func() { dotsFor = before }
}
