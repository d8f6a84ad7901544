//go:build purego || !amd64

package cpu

func cpuid(leaf, sub uint32) (a, b, c, d uint32) { return 0, 0, 0, 0 }

func xcr0() uint32 { return 0 }

func hasF16C() bool { return false }
