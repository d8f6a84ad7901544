//go:build !purego

package aligned

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var multiply = kernels.New("aligned.Multiply",
	kernels.At[kernel](cpu.AVX2, multiplyAVX2), kernels.At[kernel](cpu.AVX512, multiplyAVX512))

//go:noescape
func multiplyAVX2(x, y *Term, n int, p *Places, s *Sums)

//go:noescape
func multiplyAVX512(x, y *Term, n int, p *Places, s *Sums)
