//go:build !race

package fp8_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
)

// TestAllocations checks that nothing is allocated. What the race detector is told
// of escapes to the heap.
func TestAllocations(t *testing.T) {
	forEachType(t, testAllocations[float32], testAllocations[float64],
		testAllocations[float16.Float16], testAllocations[fp8.BFloat16])
}

func testAllocations[T fp8.Float](t *testing.T) {
	src, codes := make([]T, 256), make([]byte, 256)
	st := &fp8.Stats{Detail: &fp8.Detail{}}
	p := fp8.Policy{Rounding: fp8.Stochastic, Seed: 1}
	var one byte
	for name, f := range map[string]func(){
		"Encode":       func() { fp8.Encode(codes, src, fp8.E4M3, fp8.Policy{}, nil) },
		"EncodeStats":  func() { fp8.Encode(codes, src, fp8.E4M3, p, st) },
		"EncodeScaled": func() { fp8.EncodeScaled(codes, src, fp8.E5M2, p, fp8.Scale{Stored: 3}, 9, st) },
		"EncodeOne":    func() { one += fp8.EncodeOne(src[0], fp8.E4M3, fp8.Policy{}) },
		"Decode":       func() { fp8.Decode(src, codes, fp8.E4M3) },
		"DecodeScaled": func() { fp8.DecodeScaled(src, codes, fp8.E4M3, 3) },
		"Amax":         func() { fp8.Amax(src) },
		"Merge":        func() { st.Merge(&fp8.Stats{Elements: 1}) },
	} {
		require.Zero(t, testing.AllocsPerRun(100, f), name)
	}
}
