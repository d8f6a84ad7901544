//go:build purego || !(amd64 || arm64)

package rounding

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var findExtremes = kernels.New("rounding.Magnitudes", kernels.At[extremesFunc](cpu.Generic, extremesGeneric))
