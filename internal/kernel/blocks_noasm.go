//go:build purego || !amd64

package kernel

import "github.com/octavo-fp8/octavo/internal/cpu"

const noBlocks = "kernel: this level takes no rows of blocks"

func EncodeBlocks(l cpu.Level, dst *byte, src *float32, n int, e *Encoding, c *Counts, scales *float32, block int) {
	panic(noBlocks)
}

func MaxBlocks(l cpu.Level, dst, src *float32, blocks, block int) { panic(noBlocks) }
