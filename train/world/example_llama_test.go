package world_test

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/train/world"
)

// Two ways to compute the gradient of a batch: on eight ranks, and on one that has the same
// slices and shards.
func ExampleNewLlama() {
	model, err := nn.NewLlama(nn.Config{
		Vocab: 11, Dim: 8, Layers: 2, Heads: 2, Hidden: 12, Context: 4, Workers: 1,
	}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens, targets := []int32{1, 2, 3, 4, 5, 6, 7, 8}, []int32{2, 3, 4, 5, 6, 7, 8, 9}
	layout := world.Layout{Data: 2, Tensor: 2, Pipeline: 2, Zero: 2}
	var losses []float32
	var norms []float64
	for _, l := range []world.Layout{layout, layout.Twin()} {
		m, err := world.NewLlama(model, l, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		loss, norm, err := m.Gradients(context.Background(), tokens, targets, 2, 4)
		if err != nil {
			fmt.Println(err)
			return
		}
		losses, norms = append(losses, loss), append(norms, norm)
		fmt.Println(l.Ranks(), "ranks")
	}
	fmt.Println(losses[0] == losses[1], norms[0] == norms[1])
	_, err = world.NewLlama(model, world.Layout{Tensor: 4}, nil)
	fmt.Println(err)
	// Output:
	// 8 ranks
	// 1 ranks
	// true true
	// world: Layout.Slices is 4: it must divide Config.KVHeads = 2
}
