package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/cpu"
)

// The state that a thread has for tiles, in XCR0: their shapes, and their data.
const (
	xTileConfig = 1 << 17
	xTileData   = 1 << 18
)

// hasAMX reports whether the processor has AMX and the system keeps its state.
func hasAMX() bool {
	if emulated.Load() > 0 {
		return true
	}
	x86 := &cpu.X86
	return runtime.GOOS == "linux" && x86.HasAMXTile && x86.HasAMXBF16 && keepsTiles(xcr0())
}

func keepsTiles(xcr0 uint32) bool {
	return xcr0&(xTileConfig|xTileData) == xTileConfig|xTileData
}

var amxPermitted = askOnce(requestAMX)

func askOnce(request func() error) func() bool {
	return sync.OnceValue(func() bool { return request() == nil })
}

// AMXPermitted reports whether Linux lets this process use AMX, which is asked for
// by the first call, and not before: the answer holds for the whole process, and
// its signal frames grow.
func AMXPermitted() bool { return emulated.Load() > 0 || amxPermitted() }

// Product returns the level of matrix products: that of [Current], or [Vectors] if it
// is AMX and Linux refuses.
func Product() Level {
	l := Current()
	if l == AMX && !AMXPermitted() {
		return Vectors
	}
	return l
}

var emulated atomic.Int32

// EmulateAMX lets a machine with level [Vectors] count as one with AMX until stop is
// called. It is for tests under an emulator: nothing else executes the
// instructions.
func EmulateAMX() (stop func()) {
	emulated.Add(1)
	return sync.OnceFunc(func() { emulated.Add(-1) })
}
