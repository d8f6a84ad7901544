//go:build !purego

package fouroversix

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var rows = kernels.New("fouroversix.Rows", kernels.At[rowsFunc](cpu.AVX2, rowsAVX2))

//go:noescape
func rowsAVX2(losses *Losses, src *float32, n, stride int, scales *Scales, next int, j *job)
