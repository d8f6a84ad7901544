//go:build purego || !(amd64 || arm64)

package elementary

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	expTo      = kernels.New("elementary.ExpTo", kernels.At[expFunc](cpu.Generic, expGeneric))
	exp2To     = kernels.New("elementary.Exp2To", kernels.At[exp2Func](cpu.Generic, exp2Generic))
	swiglu     = kernels.New("elementary.SwiGLU", kernels.At[swigluFunc](cpu.Generic, swigluGeneric))
	swigluGrad = kernels.New("elementary.SwiGLUGrad", kernels.At[swigluGradFunc](cpu.Generic, swigluGradGeneric))
)
