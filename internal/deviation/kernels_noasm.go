//go:build purego || !amd64

package deviation

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var add = kernels.New("deviation.Of", kernels.At[addFunc](cpu.Generic, addGeneric))
