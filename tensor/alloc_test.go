//go:build !race

package tensor_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestQuantizeAllocations checks that nothing is allocated once warm. The race
// detector has pools lose what they keep.
func TestQuantizeAllocations(t *testing.T) {
	src := convert[float32](mixed(rand.New(rand.NewPCG(1, 1)), 60*300, false))
	var st fp8.Stats
	for _, b := range []tensor.Block{{}, {Rows: 1, Cols: 128}, {Rows: 128, Cols: 128}} {
		x := &tensor.Tensor{Shape: []int{60, 300}, Block: b}
		for _, q := range []tensor.Quantizer{{}, {Options: tensor.Options{Stats: &st}}, {Options: tensor.Options{Stats: &fp8.Stats{Detail: new(fp8.Detail)}}}} {
			q.Scale = largest(fp8.E4M3)
			quantize := func() {
				if err := tensor.Quantize(t.Context(), x, src, q); err != nil {
					t.Fatal(err)
				}
			}
			quantize()
			require.Zero(t, testing.AllocsPerRun(3, quantize), "block %v, stats %v", b, q.Stats)
		}
		require.Zero(t, testing.AllocsPerRun(3, func() { tensor.Dequantize(src, x) }))
		m := x.Matrix()
		require.Zero(t, testing.AllocsPerRun(3, func() { src[0] = x.At(59, 299) + float32(m.At(59, 299)) }))
	}
}

// TestLargeQuantizeAllocations is the same for a tensor that goroutines share.
func TestLargeQuantizeAllocations(t *testing.T) {
	src := make([]float32, large[0]*large[1])
	x := &tensor.Tensor{Shape: large, Block: tensor.Block{Rows: 1, Cols: 128}}
	q := tensor.Quantizer{Scale: largest(fp8.E4M3), Options: tensor.Options{Stats: new(fp8.Stats), Workers: 3}}
	quantize := func() {
		if err := tensor.Quantize(t.Context(), x, src, q); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		quantize()
	}
	require.Less(t, testing.AllocsPerRun(5, quantize), 2.0) // a pool may lose a goroutine's scratch
}
