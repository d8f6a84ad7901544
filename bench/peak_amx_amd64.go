package bench

import (
	"slices"

	"github.com/octavo-fp8/octavo/internal/cpu"
)

// spinInTiles multiplies and adds for a millisecond or two, and returns how often.
func spinInTiles() (products int64) {
	if !slices.Contains(cpu.Levels(), cpu.AMX) || !cpu.AMXPermitted() {
		return 0
	}
	const rounds = 1 << 16
	spinTiles(rounds)
	return rounds * 4 * 16 * 16 * 32
}

// spinTiles adds n times the products of two tiles with two others, all of zeros.
//
//go:noescape
func spinTiles(n int)
