//go:build purego || !(amd64 || arm64)

package tile

import "github.com/octavo-fp8/octavo/internal/cpu"

func kernelFor(cpu.Level) *Kernel { return nil }
