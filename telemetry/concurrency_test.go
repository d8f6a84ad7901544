package telemetry_test

import (
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
)

func TestConcurrentUse(t *testing.T) {
	const workers, steps, blocks = 8, 20, 50
	var sink events
	shared := new(telemetry.Recorder)
	rec := telemetry.New(&sink, shared)
	for step := range int64(steps) {
		require.NoError(t, rec.Step(step))
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for b := range blocks {
					rec.Block("op", fmt.Sprint(b%3), w, b, 1, &fp8.Stats{Elements: 1, NaN: 1})
					rec.NonFinite("op", fmt.Sprint(b%3), b, math.NaN())
				}
				rec.Totals()
				rec.FirstNonFinite()
				_, _ = rec.MarshalJSON()
				new(telemetry.Recorder).Merge(rec)
			})
		}
		wg.Wait()
	}
	require.NoError(t, rec.Flush())
	require.Len(t, sink.got, steps*3)
	var elements int64
	for _, total := range rec.Totals() {
		require.EqualValues(t, steps, total.Events)
		require.Equal(t, telemetry.Block{Col: int(total.Tensor[0] - '0'), Scale: 1, Stats: fp8.Stats{Elements: 1, NaN: 1}}, total.Worst)
		elements += total.Stats.Elements
	}
	require.EqualValues(t, workers*steps*blocks, elements)
	require.Equal(t, rec.Totals(), shared.Totals())
}

func TestConcurrentStepsLoseNothing(t *testing.T) {
	var sink events
	rec := telemetry.New(&sink)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range int64(100) {
				rec.Block("op", "t", w, 0, 1, &fp8.Stats{Elements: 1})
				_ = rec.Step(i)
				_ = rec.Flush()
			}
		})
	}
	wg.Wait()
	require.NoError(t, rec.Flush())
	var elements int64
	for _, e := range sink.got {
		elements += e.Stats.Elements
	}
	require.EqualValues(t, 400, elements)
	require.EqualValues(t, len(sink.got), rec.Totals()[0].Events)
}
