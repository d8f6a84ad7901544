package bench

import "github.com/octavo-fp8/octavo/internal/cpu"

// spinFMA does n rounds of fused multiply-adds of so many lanes each.
func spinFMA(l cpu.Level, n int) (lanes int) {
	switch l {
	case cpu.AVX512:
		spinAVX512(n)
		return 16
	case cpu.AVX2:
		spinAVX2(n)
		return 8
	}
	return 0
}

const canRead = true

//go:noescape
func spinAVX512(n int)

//go:noescape
func spinAVX2(n int)

// read reads n bytes, a multiple of 256.
//
//go:noescape
func read(memory *byte, n int)
