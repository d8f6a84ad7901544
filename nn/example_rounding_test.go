package nn_test

import (
	"context"
	"fmt"
	"log"

	"github.com/octavo-fp8/octavo/nn"
)

// A linear layer whose operands are rounded to fewer and fewer bits. Inputs share the
// scale of their row, weights that of their matrix.
func ExampleDefaultRounding() {
	for _, format := range []nn.NarrowFormat{nn.NarrowBF16, nn.NarrowE4M3, nn.NarrowE3M2, nn.NarrowE2M1} {
		rounding := nn.DefaultRounding(format)
		layer, err := nn.NewLinear("up_proj.weight", 2, 4, nn.Options{Rounding: &rounding})
		if err != nil {
			log.Fatal(err)
		}
		copy(layer.Weight.Value, []float32{
			0.5, 0.27, -1, 0.3,
			1, 0, 2, 0.7,
		})
		y := make([]float32, 2)
		if err := layer.Forward(context.Background(), y, []float32{3, 0.26, 2, -1.1}, 1); err != nil {
			log.Fatal(err)
		}
		fmt.Println(format, y)
	}
	// Output:
	// E8M7 [-0.76171875 6.21875]
	// E4M3 [-0.78125 6.2265625]
	// E3M2 [-0.75 6.25]
	// E2M1 [-0.6875 6.25]
}
