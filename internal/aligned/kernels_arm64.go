//go:build !purego

package aligned

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var multiply = kernels.New("aligned.Multiply", kernels.At[kernel](cpu.NEON, multiplyNEON))

//go:noescape
func multiplyNEON(x, y *Term, n int, p *Places, s *Sums)
