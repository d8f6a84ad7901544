//go:build linux && amd64

package bench

import (
	"slices"
	"testing"

	"github.com/octavo-fp8/octavo/internal/amxemu"
	"github.com/octavo-fp8/octavo/internal/cpu"
)

func TestSpin(t *testing.T) {
	for _, l := range cpu.Levels() {
		if products := spin(l); (products == 0) != (l == cpu.Generic) {
			t.Errorf("%v: %d products", l, products)
		}
	}
}

// TestSpinAMX runs the instructions, as many as there should be.
func TestSpinAMX(t *testing.T) {
	amxemu.Test(t, func(t *testing.T) {
		memory := slices.Repeat([]byte{0x80, 0x3F}, 2048)
		spinAMX(3, &memory[0])
	}, "ldtilecfg", "tileloadd", "tdpbf16ps", "tilerelease")
}
