//go:build !purego

package cpu

// xcr0 returns the lower half of XCR0, which says what state the system keeps. The
// processor must have AVX.
func xcr0() uint32
