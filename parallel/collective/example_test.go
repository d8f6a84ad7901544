package collective_test

import (
	"fmt"

	"github.com/octavo-fp8/octavo/parallel/collective"
)

// Four workers have gradients that are alike: their sum does not fit E4M3 under the
// scale of each, unless it is divided before.
func ExampleReducer() {
	shards := [][]float32{{8, 0.001}, {7, 0.002}, {8, 0.001}, {7, 0.002}}
	mean := make([]float32, 2)
	for _, d := range []collective.Division{collective.DividePost, collective.DividePre} {
		reducer := collective.Reducer{FP8: true, Division: d}
		r := reducer.Mean(0, mean, shards)
		fmt.Printf("mean %.4f: %d sums saturated, %d values flushed\n", mean, r.Sum.Saturated(), r.Encode.Flushed)
	}
	// Output:
	// mean [2.0000 0.0014]: 3 sums saturated, 0 values flushed
	// mean [7.4286 0.0014]: 0 sums saturated, 0 values flushed
}
