package swiglu_test

import (
	"fmt"

	"github.com/octavo-fp8/octavo/swiglu"
)

// Two tokens, three channels, the second of which is an outlier. Smoothing
// brings its column of z near the others', and the same power of two waits in
// the down projection.
func Example() {
	u := []float32{
		1, 512, -3,
		2, 768, 1,
	}
	g := []float32{
		4, 4, 4,
		4, 4, 4,
	}
	down := []float32{1, 1, 1}

	var smoother swiglu.Smoother
	s := smoother.Scales(u, 3)
	fmt.Println("scales:", s.Values)

	z := make([]float32, len(u))
	swiglu.Forward(z, u, g, s)
	fmt.Printf("z:      %.2f\n", z)

	swiglu.FoldDown(down, down, s)
	fmt.Println("down:  ", down)
	// Output:
	// scales: [0.5 0.001953125 0.5]
	// z:      [1.96 3.93 -5.89 3.93 5.89 1.96]
	// down:   [2 512 2]
}
