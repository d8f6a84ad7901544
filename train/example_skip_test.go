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
