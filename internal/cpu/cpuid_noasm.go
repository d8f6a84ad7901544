//go:build purego || !amd64

package cpu

func xcr0() uint32 { return 0 }

func hasF16C() bool { return false }
