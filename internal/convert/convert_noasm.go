//go:build purego || !(amd64 || arm64)

package convert

import "github.com/octavo-fp8/octavo/internal/cpu"

const noKernel = "kernel: this build has no kernels"

func Encode(l cpu.Level, dst *byte, src *float32, n int, e *Encoding, scales *float32, layout Layout, c *Counts) {
	panic(noKernel)
}

func Decode(l cpu.Level, dst *float32, src *byte, n int, d *Decoding) (special bool) {
	panic(noKernel)
}

func MaxBits(l cpu.Level, src *float32, n int) uint32 { panic(noKernel) }

func MaxBlocks(l cpu.Level, dst, src *float32, blocks, block int) { panic(noKernel) }

func MaxElements(l cpu.Level, dst, src *float32, n int) { panic(noKernel) }
