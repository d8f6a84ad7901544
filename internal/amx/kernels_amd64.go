//go:build !purego

package amx

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	multiply       = kernels.New("amx.Multiply", kernels.At[multiplyFunc](cpu.AMX, multiplyAMX))
	packRows       = kernels.New("amx.PackRows", kernels.At[packRowsFunc](cpu.AVX512, packRowsAVX512))
	packColumns    = kernels.New("amx.PackColumns", kernels.At[packColumnsFunc](cpu.AVX512, packColumnsAVX512))
	packTransposed = kernels.New("amx.PackTransposed", kernels.At[packTransposedFunc](cpu.AVX512, packTransposedAVX512))
	copyRows       = kernels.New("amx.CopyRows", kernels.At[copyRowsFunc](cpu.AVX512, copyRowsAVX512))
)

//go:noescape
func multiplyAMX(c *float32, stride int, a, b *uint16, sa, sb *float32, chunks, blocks, strips int, p *float32, resume, hold, fresh bool)

//go:noescape
func packRowsAVX512(dst *uint16, codes *byte, stride, rows, n int, c *Decoder)

//go:noescape
func packColumnsAVX512(dst *uint16, codes *byte, n int, c *Decoder)

//go:noescape
func packTransposedAVX512(dst *uint16, codes *byte, stride, chunks int, c *Decoder)

//go:noescape
func copyRowsAVX512(dst *float32, stride int, c *float32, rows int, stream bool)
