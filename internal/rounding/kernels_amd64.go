//go:build !purego

package rounding

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	nearest = kernels.New("rounding.Nearest",
		kernels.At[roundFunc](cpu.Generic, nearestGeneric),
		kernels.At[roundFunc](cpu.AVX2, func(dst, src []float32, j *job) {
			if n := len(src) &^ 7; n > 0 {
				nearestAVX2(&dst[0], &src[0], n, j)
				dst, src = dst[n:], src[n:]
			}
			nearestGeneric(dst, src, j)
		}),
		kernels.At[roundFunc](cpu.AVX512, func(dst, src []float32, j *job) { nearestAVX512(&dst[0], &src[0], len(src), j) }))
	nearestBF16 = kernels.New("rounding.NearestBF16",
		kernels.At[roundFunc](cpu.Generic, nearestBF16Generic),
		kernels.At[roundFunc](cpu.AVX2, func(dst, src []float32, j *job) {
			if n := len(src) &^ 7; n > 0 {
				nearestBF16AVX2(&dst[0], &src[0], n, &bf16)
				dst, src = dst[n:], src[n:]
			}
			nearestBF16Generic(dst, src, j)
		}),
		kernels.At[roundFunc](cpu.AVX512, func(dst, src []float32, _ *job) { nearestBF16AVX512(&dst[0], &src[0], len(src), &bf16) }))
	// AVX2 has no products of 64 bits, of which random numbers are made.
	stochastic = kernels.New("rounding.Stochastic",
		kernels.At[roundFunc](cpu.Generic, stochasticGeneric),
		kernels.At[roundFunc](cpu.AVX512, func(dst, src []float32, j *job) { stochasticAVX512(&dst[0], &src[0], len(src), j, &mix) }))
	randomBF16 = kernels.New("rounding.RandomBF16",
		kernels.At[roundFunc](cpu.Generic, randomBF16Generic),
		kernels.At[roundFunc](cpu.AVX512, func(dst, src []float32, j *job) {
			randomBF16AVX512(&dst[0], &src[0], len(src), j.index, &mix, &bf16)
		}))
)

// halves is what kernels that round to BF16 need.
type halves struct{ one, below, upper, quiet, infinity uint32 }

var bf16 = halves{one: 1, below: 0x7FFF, upper: 0xFFFF0000, quiet: 0x00400000, infinity: infinityBits}

// mixing is what kernels that compute random.Mix need.
type mixing struct {
	lanes       [8]uint64 // 0 to 7, each with the first number that Mix adds
	eight       uint64
	first, then uint64     // the factors
	odd         [16]uint32 // of two vectors, the upper halves of all numbers
}

var mix = mixing{
	lanes: func() (l [8]uint64) {
		for i := range l {
			l[i] = uint64(i) + 0x9E3779B97F4A7C15
		}
		return l
	}(),
	eight: 8, first: 0xBF58476D1CE4E5B9, then: 0x94D049BB133111EB,
	odd: [16]uint32{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31},
}

//go:noescape
func nearestAVX2(dst, src *float32, n int, j *job)

//go:noescape
func nearestAVX512(dst, src *float32, n int, j *job)

//go:noescape
func nearestBF16AVX2(dst, src *float32, n int, h *halves)

//go:noescape
func nearestBF16AVX512(dst, src *float32, n int, h *halves)

//go:noescape
func stochasticAVX512(dst, src *float32, n int, j *job, m *mixing)

//go:noescape
func randomBF16AVX512(dst, src *float32, n int, index uint64, m *mixing, h *halves)
