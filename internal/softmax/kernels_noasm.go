//go:build purego || !amd64

package softmax

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	scaled  = kernels.New("softmax.scale", kernels.At[scaleFunc](cpu.Generic, scaleGeneric))
	weights = kernels.New[weightsFunc]("softmax.weights")
	sum     = kernels.New("softmax.sum", kernels.At[sumFunc](cpu.Generic, sumGeneric))
)
