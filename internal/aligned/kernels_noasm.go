//go:build purego || !amd64

package aligned

import "github.com/octavo-fp8/octavo/internal/kernels"

var sum = kernels.New[kernel]("aligned.Sum")
