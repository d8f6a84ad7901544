package tensor

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
)

// TestHolds compares with the values of all codes, for float32 of all exponents and signs
// and, of mantissas, for all those of eight bits and some others.
func TestHolds(t *testing.T) {
	of := map[ScaleFormat]map[uint32]bool{E8M0Scales: {}, UE4M3Scales: {}}
	for code := range 256 {
		of[E8M0Scales][math.Float32bits(fp8.E8M0(code).Float32())] = true
		of[UE4M3Scales][math.Float32bits(fp8.E4M3.Float32(byte(code&0x7F)))] = true
	}
	const step = 1 << 13
	for f, values := range of {
		for bits := uint64(0); bits < 1<<32; bits += step {
			for _, b := range []uint32{uint32(bits), uint32(bits) + 1} {
				x := math.Float32frombits(b)
				if got := f.Holds(x); got != (values[b] || x != x) {
					t.Fatalf("%v: %v (%08x): %t", f, x, b, got)
				}
			}
		}
		for b := range values {
			require.True(t, f.Holds(math.Float32frombits(b)))
		}
	}
}
