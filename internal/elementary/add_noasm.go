//go:build purego || !amd64

package elementary

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var addTo = kernels.New("elementary.Add", kernels.At[addFunc](cpu.Generic, addGeneric))
