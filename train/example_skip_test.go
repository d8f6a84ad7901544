package train_test

import (
	"fmt"

	"github.com/octavo-fp8/octavo/train"
)

// A gradient norm that jumps to fifty times what it was is a spike.
func ExampleSpikeDetector() {
	var norms train.SpikeDetector
	for step, norm := range []float64{
		1.1, 0.9, 1.0, 1.2, 0.8, 1.0, 1.1, 0.9, 1.0, 1.1, 1.3, 50, 1.1,
	} {
		if spike, ok := norms.Observe(int64(step), norm, nil); ok {
			fmt.Printf("step %d: %v is %.0f spreads above %.2f\n", spike.Step, spike.Value, spike.Score, spike.Median)
		}
	}
	// Output:
	// step 11: 50 is 331 spreads above 1.00
}

// Four workers have gradients that are alike: their sum does not fit E4M3 under the
// scale of each, unless it is divided before.
func ExampleReducer() {
	shards := [][]float32{{8, 0.001}, {7, 0.002}, {8, 0.001}, {7, 0.002}}
	mean := make([]float32, 2)
	for _, d := range []train.Division{train.DividePost, train.DividePre} {
		reducer := train.Reducer{FP8: true, Division: d}
		r := reducer.Mean(0, mean, shards)
		fmt.Printf("mean %.4f: %d sums saturated, %d values flushed\n", mean, r.Sum.Saturated(), r.Encode.Flushed)
	}
	// Output:
	// mean [2.0000 0.0014]: 3 sums saturated, 0 values flushed
	// mean [7.4286 0.0014]: 0 sums saturated, 0 values flushed
}
