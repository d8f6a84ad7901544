package rounding

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

func checkExp2FloorLog2(t *testing.T, x float32) {
	t.Helper()
	want := float32(math.Ldexp(1, int(math.Floor(float64(testutil.ExactLog2(x))))))
	if got := Exp2FloorLog2(x); got != want {
		t.Fatalf("%x: got %x, want %x", x, got, want)
	}
}

// TestExp2FloorLog2 compares with big arithmetic: every float32 for which rounding
// the logarithm may matter, those around them, and many others.
func TestExp2FloorLog2(t *testing.T) {
	for n := -149; n < 128; n++ {
		x := float32(math.Ldexp(1, n))
		checkExp2FloorLog2(t, x)
		below, above := x, x
		neighbours := 200
		if testing.Short() {
			neighbours = 20
		}
		for range neighbours {
			below = math.Nextafter32(below, 0)
			if above = math.Nextafter32(above, math.MaxFloat32); below > 0 {
				checkExp2FloorLog2(t, below)
			}
			checkExp2FloorLog2(t, above)
		}
	}
	largest := float32(math.MaxFloat32)
	for range 200 {
		checkExp2FloorLog2(t, largest)
		largest = math.Nextafter32(largest, 0)
	}
	r := rand.New(rand.NewPCG(4, 4))
	n := 50_000
	if testing.Short() {
		n = 2000
	}
	for range n {
		checkExp2FloorLog2(t, math.Float32frombits(1+r.Uint32N(0x7F7FFFFF)))
	}
	require.Zero(t, Exp2FloorLog2(0))
	require.True(t, math.IsNaN(float64(Exp2FloorLog2(float32(math.NaN())))))
}

// TestExp2CeilLog2 is TestExp2FloorLog2 upwards, within what E8M0 holds.
func TestExp2CeilLog2(t *testing.T) {
	check := func(x float32) {
		n := min(max(int(math.Ceil(float64(testutil.ExactLog2(x)))), -127), 127)
		if got, want := Exp2CeilLog2(x), float32(math.Ldexp(1, n)); got != want {
			t.Fatalf("%x: got %x, want %x", x, got, want)
		}
	}
	for n := -149; n < 128; n++ {
		power := math.Float32bits(float32(math.Ldexp(1, n)))
		for d := uint32(0); d < 40; d++ { // of which rounding takes 22 at most
			check(math.Float32frombits(power + d))
			check(math.Float32frombits(max(power, d+1) - d))
		}
	}
	r := rand.New(rand.NewPCG(16, 40))
	for range 3000 {
		check(math.Float32frombits(1 + r.Uint32N(0x7F7FFFFF)))
	}
	require.Equal(t, float32(0x1p-127), Exp2CeilLog2(0))
	require.Equal(t, float32(0x1p127), Exp2CeilLog2(float32(math.Inf(1))))
}
