//go:build !purego

package rounding

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	nearest = kernels.New("rounding.Nearest",
		kernels.At[roundFunc](cpu.Generic, nearestGeneric),
		kernels.At[roundFunc](cpu.NEON, func(dst, src []float32, j *job) {
			n := len(src) &^ 7
			nearestNEON(&dst[0], &src[0], n, j)
			nearestGeneric(dst[n:], src[n:], j)
		}))
	nearestBF16 = kernels.New("rounding.NearestBF16",
		kernels.At[roundFunc](cpu.Generic, nearestBF16Generic),
		kernels.At[roundFunc](cpu.NEON, func(dst, src []float32, j *job) {
			n := len(src) &^ 7
			nearestBF16NEON(&dst[0], &src[0], n)
			nearestBF16Generic(dst[n:], src[n:], j)
		}))
	stochastic = kernels.New("rounding.Stochastic",
		kernels.At[roundFunc](cpu.Generic, stochasticGeneric),
		kernels.At[roundFunc](cpu.NEON, func(dst, src []float32, j *job) {
			n := len(src) &^ 3
			stochasticNEON(&dst[0], &src[0], n, j)
			rest := j.from(n)
			stochasticGeneric(dst[n:], src[n:], &rest)
		}))
	randomBF16 = kernels.New("rounding.RandomBF16",
		kernels.At[roundFunc](cpu.Generic, randomBF16Generic),
		kernels.At[roundFunc](cpu.NEON, func(dst, src []float32, j *job) {
			n := len(src) &^ 3
			randomBF16NEON(&dst[0], &src[0], n, j.index)
			rest := j.from(n)
			randomBF16Generic(dst[n:], src[n:], &rest)
		}))
)

// from returns what is left of a job after n elements.
func (j *job) from(n int) job {
	rest := *j
	rest.index += uint64(n)
	return rest
}

//go:noescape
func nearestNEON(dst, src *float32, n int, j *job)

//go:noescape
func nearestBF16NEON(dst, src *float32, n int)

//go:noescape
func stochasticNEON(dst, src *float32, n int, j *job)

//go:noescape
func randomBF16NEON(dst, src *float32, n int, first uint64)
