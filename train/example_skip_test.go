package train_test

import (
	"fmt"
	"log"
	"math"

	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/train"
)

// A weight becomes NaN between two steps. The step is skipped, and the recorder knows
// where the trouble began: not in the first gradient that is NaN.
func ExampleAdamW_StepOrSkip() {
	recipes := train.DefaultFP8()
	model, err := train.NewLlama(train.Config{
		Vocab: 256, Dim: 16, Layers: 2, Heads: 2, Hidden: 24, Context: 32, FP8: &recipes,
	}, 1)
	if err != nil {
		log.Fatal(err)
	}
	recorder := telemetry.New()
	model.Listen(recorder)
	model.Param("model.layers.1.mlp.down_proj.weight").Value[3] = float32(math.NaN())

	tokens, targets := []int32("to be or"), []int32("o be or ")
	if _, err := model.Loss(tokens, targets, 1, len(tokens)); err != nil {
		log.Fatal(err)
	}
	if err := model.Backward(); err != nil {
		log.Fatal(err)
	}
	optimizer := train.AdamW{Clip: 1}
	_, skip, err := optimizer.StepOrSkip(model.Params(), 1e-3, recorder)
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
