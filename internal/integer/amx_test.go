//go:build linux && amd64 && !purego

package integer

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/octavo-fp8/octavo/internal/amxemu"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
)

// TestAMX compares the kernel of AMX with the definition where there is none, too, for
// blocks of every number of quads, which tiles of different sizes divide.
func TestAMX(t *testing.T) {
	amxemu.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(4, 16))
		for quads := 1; quads <= 40; quads++ {
			for blocks, flags := range []uint64{0, First | Last | Canonical, First | Last | Zero, First | Last | Canonical | Zero} {
				if blocks == 0 { // part of a block
					blocks, flags = 1, []uint64{First, 0, Last, Last | Canonical}[quads%4]
				}
				q := newProblem(t, r, &amx, pair{quads % 3, quads / 3 % 3}, amx.MR*(1+quads%2), blocks, quads, false)
				q.check(t, &amx, false, flags, fmt.Sprintf("%d blocks of %d quads, flags %d", blocks, quads, flags))
			}
		}
	}, "ldtilecfg", "tileloadd", "tdpbssd", "tilestored", "tilerelease")
	defer cpu.EmulateAMX()() // which it was, or is
	for _, name := range []string{"integer.Kernels", "integer.Multiply"} {
		kernelstest.Tested(t, name, cpu.AMX)
	}
}
