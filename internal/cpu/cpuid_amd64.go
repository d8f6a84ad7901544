//go:build !purego

package cpu

// cpuid returns the registers EAX to EDX that CPUID gives.
func cpuid(leaf, sub uint32) (a, b, c, d uint32)

// xcr0 returns the lower half of XCR0, which says what state the system keeps. The
// processor must have AVX.
func xcr0() uint32

// hasF16C reports whether the processor converts float16 (CPUID leaf 1, ECX bit 29).
// golang.org/x/sys/cpu says so too, in versions that need a newer Go than ours.
// What the instructions need of the system is what AVX needs.
func hasF16C() bool {
	_, _, c, _ := cpuid(1, 0)
	return c&(1<<29) != 0
}
