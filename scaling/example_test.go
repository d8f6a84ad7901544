package scaling_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// The default recipe of activations: 1x128 blocks and scales that are powers of
// two. A large value costs the small ones of its own block, and no others.
func ExampleQuantize() {
	src := make([]float32, 256)
	src[0], src[1] = 3, 0.001
	src[128], src[129] = 3000, 0.001

	var st fp8.Stats
	x := &tensor.Tensor{Name: "x", Shape: []int{1, 256}}
	q := scaling.Quantizer{Recipe: scaling.Default(scaling.Input), Options: tensor.Options{Stats: &st}}
	if err := scaling.Quantize(context.Background(), x, src, q); err != nil {
		log.Fatal(err)
	}
	fmt.Println(q.Recipe)
	fmt.Println("scales:", x.Scales)
	fmt.Println("values:", x.At(0, 0), x.At(0, 1), x.At(0, 128), x.At(0, 129))
	fmt.Println("flushed to zero:", st.Flushed)
	// Output:
	// te-block-pow2 E4M3 1x128
	// scales: [0.0078125 8]
	// values: 3 0.0009765625 3072 0
	// flushed to zero: 1
}

// The same amax under several arithmetics.
func ExampleRecipe_Scale() {
	for _, p := range []scaling.Profile{scaling.TEBlock, scaling.TEBlockPow2, scaling.DeepSeek, scaling.MXFloor, scaling.MXRCeil} {
		s := scaling.Recipe{Profile: p, Format: fp8.E4M3}.Scale(500)
		fmt.Printf("%-14s%v\n", p, s.Stored)
	}
	// Output:
	// te-block      1.1160713
	// te-block-pow2 2
	// deepseek      1.1160715
	// mx-floor      1
	// mx-rceil      2
}

// Delayed scaling: each step is encoded with the scale that the steps before it
// gave, and the state goes into the checkpoint.
func ExampleHistories() {
	recipe := scaling.Recipe{
		Profile: scaling.TEDelayed,
		Delayed: scaling.Delayed{Length: 3},
	}
	var histories scaling.Histories
	history, err := histories.Get("layers.0.input", recipe)
	if err != nil {
		log.Fatal(err)
	}
	for _, src := range [][]float32{{1, 2}, {1, 4}, {1, 1}} {
		x := &tensor.Tensor{Name: "layers.0.input", Shape: []int{2}}
		if err := scaling.Quantize(context.Background(), x, src, scaling.Quantizer{Recipe: recipe, History: history}); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("multiplied by %v: % x\n", history.Scale(0).Multiplier, x.Codes)
		histories.Update()
	}
	text, err := json.Marshal(histories.State())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
	// Output:
	// multiplied by 1: 38 40
	// multiplied by 224: 76 7e
	// multiplied by 112: 6e 6e
	// {"version":2,"step":3,"histories":{"layers.0.input":{"format":"E4M3","block":"tensor","grid":[1,1],"blocks":[{"scale":112,"current":0,"past":[1,4]}]}}}
}

// Two workers, each with its part of the batch.
func ExampleMerge() {
	worker := func(amax float32) scaling.State {
		var histories scaling.Histories
		h, err := histories.Get("x", scaling.TEDelayed.Recipe(scaling.Input))
		if err != nil {
			log.Fatal(err)
		}
		h.Observe(0, amax)
		return histories.State()
	}
	merged, err := scaling.Merge(worker(3), worker(14))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(merged.Histories["x"].Blocks[0].Current)
	// Output: 14
}
