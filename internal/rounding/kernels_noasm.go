//go:build purego || !(amd64 || arm64)

package rounding

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	nearest     = kernels.New("rounding.Nearest", kernels.At[roundFunc](cpu.Generic, nearestGeneric))
	nearestBF16 = kernels.New("rounding.NearestBF16", kernels.At[roundFunc](cpu.Generic, nearestBF16Generic))
	stochastic  = kernels.New("rounding.Stochastic", kernels.At[roundFunc](cpu.Generic, stochasticGeneric))
	randomBF16  = kernels.New("rounding.RandomBF16", kernels.At[roundFunc](cpu.Generic, randomBF16Generic))
)
