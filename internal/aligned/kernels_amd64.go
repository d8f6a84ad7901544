//go:build !purego

package aligned

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var sum = kernels.New("aligned.Sum", kernels.At[kernel](cpu.AVX512, sumAVX512))

//go:noescape
func sumAVX512(x, y *Term, n int, p *Places, t *total)
