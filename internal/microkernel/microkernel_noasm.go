//go:build purego || !(amd64 || arm64)

package microkernel

import "github.com/octavo-fp8/octavo/internal/cpu"

func kernelsFor(cpu.Level) *Kernels { return nil }
