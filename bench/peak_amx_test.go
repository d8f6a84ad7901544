//go:build linux && amd64

package bench

import (
	"testing"

	"github.com/octavo-fp8/octavo/internal/amxemu"
)

// TestSpinTiles runs the instructions, as many as there should be.
func TestSpinTiles(t *testing.T) {
	amxemu.Test(t, func(t *testing.T) { spinTiles(3) }, "ldtilecfg", "tdpbf16ps", "tilerelease")
}
