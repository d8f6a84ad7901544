package telemetry_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/tensor"
)

var _ tensor.BlocksReporter = (*telemetry.Recorder)(nil)

// TestBlocks checks that blocks by the dozen, in any order of dozens, are summed up as
// blocks one by one are.
func TestBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for range 200 {
		gridCols, n := 1+r.IntN(5), 1+r.IntN(60)
		scales, stats := make([]float32, n), make([]fp8.Stats, n)
		for i := range stats {
			scales[i] = r.Float32()
			stats[i] = fp8.Stats{Elements: 128, Amax: r.Float64(), Smallest: r.Float64(), Subnormal: r.Int64N(9), Detail: new(fp8.Detail)}
			if r.IntN(4) == 0 {
				stats[i].Flushed = r.Int64N(3)
			}
		}
		var one, many telemetry.Recorder
		require.NoError(t, one.Step(3))
		require.NoError(t, many.Step(3))
		for i := range stats {
			one.Block("op", "x", i/gridCols, i%gridCols, scales[i], &stats[i])
		}
		cut := r.IntN(n + 1)
		many.Blocks("op", "x", cut, gridCols, scales[cut:], stats[cut:])
		many.Blocks("op", "x", 0, gridCols, scales[:cut], stats[:cut])
		require.Equal(t, one.Snapshot(), many.Snapshot())
	}
}

func TestBlocksMisuse(t *testing.T) {
	var none *telemetry.Recorder
	none.Blocks("op", "x", 0, 0, nil, make([]fp8.Stats, 1))
	var r telemetry.Recorder
	r.Blocks("op", "x", 0, 0, nil, nil)
	require.Empty(t, r.Totals())
	require.Panics(t, func() { r.Blocks("op", "x", 0, 0, make([]float32, 1), make([]fp8.Stats, 1)) })
	require.Panics(t, func() { r.Blocks("op", "x", 0, 1, nil, make([]fp8.Stats, 1)) })
	require.Panics(t, func() { r.Blocks("op", "x", -1, 2, make([]float32, 1), make([]fp8.Stats, 1)) })
}
