//go:build purego || !amd64

package elementary

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	exps        = kernels.New("elementary.ExpTo", kernels.At[expFunc](cpu.Generic, expGeneric))
	swiglus     = kernels.New("elementary.SwiGLU", kernels.At[swigluFunc](cpu.Generic, swigluGeneric))
	swigluGrads = kernels.New("elementary.SwiGLUGrad", kernels.At[swigluGradFunc](cpu.Generic, swigluGradGeneric))
)
