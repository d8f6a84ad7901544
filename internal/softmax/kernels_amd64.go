//go:build !purego

package softmax

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	scaled = kernels.New("softmax.scale", kernels.At[scaleFunc](cpu.Generic, scaleGeneric),
		kernels.At[scaleFunc](cpu.AVX2, func(z []float32, rows []Row, scale float32) {
			scaleAVX2(&z[0], &rows[0], len(rows), scale)
		}),
		kernels.At[scaleFunc](cpu.AVX512, func(z []float32, rows []Row, scale float32) {
			scaleAVX512(&z[0], &rows[0], len(rows), scale)
		}))
	weights = kernels.New("softmax.weights",
		kernels.At[weightsFunc](cpu.AVX512, func(z []float32, rows []Row, j *job) {
			weightsAVX512(&z[0], &rows[0], len(rows), j, &powers)
		}))
	sum = kernels.New("softmax.sum", kernels.At[sumFunc](cpu.Generic, sumGeneric),
		kernels.At[sumFunc](cpu.AVX2, func(p []float32) float32 { return sumAVX2(&p[0]) }))
)

// numbers are what the kernel of weights computes 2^y with: y = n + i/16 + r, |r| up to
// 1/32, 2^(i/16) from a table, and 2^r - 1 as a polynomial with fused multiply-adds, all in
// float64. The coefficients are not those of the least error, but such that every float32
// gets the bits of elementary.Exp2: what lies next to the middle of two float32 decides.
type numbers struct {
	least        float32 // from here down the result is 0
	magic        float64 // with that added, the last bits are 16·n+i
	coefficients [7]float64
	table        [16]uint64 // 2^(i/16) less i where 16·n+i is added
}

var powers = numbers{
	least: -200,
	magic: 0x1.8p48,
	coefficients: [7]float64{
		0x1.1872b7e3dc5c1p-55, 0x1.62e42fefa391p-01, 0x1.ebfbdff8317c2p-03, 0x1.c6b08d71b0d47p-05,
		0x1.3b2ab6fb41213p-07, 0x1.5d897e525c216p-10, 0x1.430a1d08ec681p-13,
	},
	table: func() (t [16]uint64) {
		for i, mantissa := range [16]uint64{
			0x0000000000000, 0x0b5586cf9890f, 0x172b83c7d517b, 0x2387a6e756238,
			0x306fe0a31b715, 0x3dea64c123422, 0x4bfdad5362a27, 0x5ab07dd485429,
			0x6a09e667f3bcd, 0x7a11473eb0187, 0x8ace5422aa0db, 0x9c49182a3f090,
			0xae89f995ad3ad, 0xc199bdd85529c, 0xd5818dcfba487, 0xea4afa2a490da,
		} {
			t[i] = 1023<<52 + mantissa - uint64(i)<<48
		}
		return t
	}(),
}

//go:noescape
func scaleAVX2(z *float32, rows *Row, n int, scale float32)

//go:noescape
func scaleAVX512(z *float32, rows *Row, n int, scale float32)

//go:noescape
func weightsAVX512(z *float32, rows *Row, n int, j *job, v *numbers)

//go:noescape
func sumAVX2(p *float32) float32
