//go:build !purego

package tile

import "github.com/octavo-fp8/octavo/internal/cpu"

func kernelFor(l cpu.Level) *Kernel {
	if l == cpu.NEON {
		return &neon
	}
	return nil
}

var neon = Kernel{Rows: 4, Width: 8, Tiles: tilesNEON}

//go:noescape
func tilesNEON(t *Task)
