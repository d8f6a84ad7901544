package nn_test

import (
	"context"
	"fmt"
	"log"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/telemetry"
)

// One linear layer in FP8, with gradients in E5M2, forward and backward; a
// recorder hears what its operands met. The first input leaves no room for two
// others under the same scale; for the weight gradient blocks lie along tokens,
// and none is lost.
func ExampleNewLinear() {
	recipes := nn.ProfileFP8(scaling.TEBlockPow2, fp8.E5M2)
	recorder := telemetry.New()
	layer, err := nn.NewLinear("up_proj.weight", 2, 4, nn.Options{FP8: &recipes, Shared: &nn.Shared{Reporter: recorder}})
	if err != nil {
		log.Fatal(err)
	}
	copy(layer.Weight.Value, []float32{
		0.5, 0.25, -1, 0.3,
		1, 0, 2, 0.7,
	})

	x := []float32{3e5, 0.25, 2, -1}
	y, dx := make([]float32, 2), make([]float32, 4)
	if err := layer.Forward(context.Background(), y, x, 1); err != nil {
		log.Fatal(err)
	}
	if err := layer.Backward(context.Background(), dx, []float32{1, -0.1}); err != nil {
		log.Fatal(err)
	}
	fmt.Println("y: ", y)
	fmt.Println("dx:", dx)
	for _, t := range recorder.Totals() {
		fmt.Printf("%-16s %-16s flushed %d of %d\n", t.Tensor, t.Op, t.Stats.Flushed, t.Stats.Elements)
	}
	// Output:
	// y:  [147454 294916]
	// dx: [0.40625 0.25 -1.1875 0.24804688]
	// up_proj.gradient input-gradient   flushed 0 of 2
	// up_proj.gradient weight-gradient  flushed 0 of 2
	// up_proj.input    forward          flushed 2 of 4
	// up_proj.input    weight-gradient  flushed 0 of 4
	// up_proj.weight   forward          flushed 0 of 8
	// up_proj.weight   input-gradient   flushed 0 of 8
}
