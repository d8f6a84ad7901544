//go:build !amd64

package bench

import "github.com/octavo-fp8/octavo/internal/cpu"

func spin(cpu.Level) (products int64) { return 0 }

func canRead() bool { return false }

func read(*byte, int) {}
