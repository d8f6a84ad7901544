package bench

import (
	"slices"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/cpu"
)

// spin multiplies and adds for a millisecond or two, beside which waking a goroutine
// counts little, and returns how often.
func spin(l cpu.Level) (products int64) {
	const (
		rounds = 1 << 20
		chains = 12 // of fused multiply-adds that do not wait for each other, in a round
	)
	if l == cpu.AMX && !cpu.AMXPermitted() {
		l = cpu.Vectors
	}
	switch l {
	case cpu.AMX:
		var tiles [4096 + 63]byte
		spinAMX(rounds/16, &tiles[-uintptr(unsafe.Pointer(&tiles))%64])
		return rounds / 16 * 4 * 16 * 16 * 32
	case cpu.AVX512BF16:
		spinAVX512BF16(rounds)
		return rounds * chains * 32
	case cpu.AVX512:
		spinAVX512(rounds)
		return rounds * chains * 16
	case cpu.AVX2:
		spinAVX2(rounds)
		return rounds * chains * 8
	}
	return 0
}

func canRead() bool { return slices.Contains(cpu.Levels(), cpu.AVX2) }

// spinAMX adds n times the products of two tiles with two others, from 4096 bytes of
// memory.
//
//go:noescape
func spinAMX(n int, tiles *byte)

//go:noescape
func spinAVX512BF16(n int)

//go:noescape
func spinAVX512(n int)

//go:noescape
func spinAVX2(n int)

// read reads n bytes, a multiple of 256 and not 0.
//
//go:noescape
func read(memory *byte, n int)
