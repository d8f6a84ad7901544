package optim_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/telemetry"
)

func ExampleSchedule() {
	s := optim.Schedule{Peak: 1, Final: 0.1, Warmup: 2, Steps: 6}
	for step := range 7 {
		fmt.Printf("%.3f ", s.At(step))
	}
	fmt.Println()
	// Output: 0.500 1.000 1.000 0.868 0.550 0.232 0.100
}

// A weight becomes NaN between two steps. The step is skipped, and the recorder knows
// where the trouble began: not in the first gradient that is NaN.
func ExampleAdamW_StepOrSkip() {
	recipes := nn.DefaultFP8()
	model, err := nn.NewLlama(nn.Config{
		Vocab: 256, Dim: 16, Layers: 2, Heads: 2, Hidden: 24, Context: 32, FP8: &recipes,
	}, 1)
	if err != nil {
		log.Fatal(err)
	}
	recorder := telemetry.New()
	model.Listen(recorder)
	model.Param("model.layers.1.mlp.down_proj.weight").Value[3] = float32(math.NaN())

	tokens, targets := []int32("to be or"), []int32("o be or ")
	if _, err := model.Loss(context.Background(), tokens, targets, 1, len(tokens)); err != nil {
		log.Fatal(err)
	}
	if err := model.Backward(context.Background()); err != nil {
		log.Fatal(err)
	}
	optimizer := optim.AdamW{Clip: 1}
	_, skip, err := optimizer.StepOrSkip(context.Background(), model.Params(), 1e-3, recorder)
	if err != nil {
		log.Fatal(err)
	}
	if skip != nil {
		fmt.Printf("gradient of %s: %v\n", skip.Gradient.Tensor, skip.Gradient.Value)
		fmt.Printf("it began in %s of %s, element %d\n", skip.First.Op, skip.First.Tensor, skip.First.Index)
	}
	fmt.Println(optimizer.Steps(), "taken,", optimizer.Skipped(), "skipped")
	// Output:
	// gradient of model.embed_tokens.weight: NaN
	// it began in forward of model.layers.1.mlp.down_proj.weight, element 3
	// 0 taken, 1 skipped
}
