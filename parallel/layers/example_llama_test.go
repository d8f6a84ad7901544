package layers_test

import (
	"context"
	"fmt"
	"os"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/parallel/layers"
	"github.com/octavo-fp8/octavo/train"
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
	layout := layers.Layout{Data: 2, Tensor: 2, Pipeline: 2, Zero: 2}
	var losses []float32
	var norms []float64
	for _, l := range []layers.Layout{layout, layout.Twin()} {
		m, err := layers.NewLlama(model, l, nil)
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
	_, err = layers.NewLlama(model, layers.Layout{Tensor: 4}, nil)
	fmt.Println(err)
	// Output:
	// 8 ranks
	// 1 ranks
	// true true
	// layers: Layout.Slices is 4: it must divide Config.KVHeads = 2
}

// Four ranks write a checkpoint while they go on, and two read it.
func ExampleLlama_Take() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	directory := train.Directory{Path: dir, Keep: 2}
	run := func(l layers.Layout, from, to int) error {
		model, err := nn.NewLlama(nn.Config{
			Vocab: 11, Dim: 8, Layers: 2, Heads: 2, Hidden: 12, Context: 4, Workers: 1,
		}, 1)
		if err != nil {
			return err
		}
		m, err := layers.NewLlama(model, l, func() *optim.AdamW { return &optim.AdamW{Clip: 1} })
		if err != nil {
			return err
		}
		if from > 0 {
			_, err := directory.Resume(func(c *train.Checkpoint) error { return m.Restore(ctx, c) })
			if err != nil {
				return err
			}
		}
		saver := train.Saver{Interval: 4} // the most steps that a kill loses
		var snapshots []*train.Snapshot
		for range m.Layout().Ranks() {
			snapshots = append(snapshots, &train.Snapshot{Beside: true})
		}
		for step := from; step < to; step++ {
			tokens, targets := []int32{1, 2, 3, 4, 5, 6, 7, 8}, []int32{2, 3, 4, 5, 6, 7, 8, 9}
			loss, _, err := m.Step(ctx, tokens, targets, 2, 4, 0.01)
			if err != nil {
				return err
			}
			fmt.Printf("step %d: %.7f\n", step, loss)
			if !saver.Due(step + 1) {
				continue
			}
			_, err = saver.Save(ctx, func() error {
				return m.Take(train.Position{Step: step + 1}, snapshots...)
			}, func(ctx context.Context) error {
				return directory.Save(ctx, snapshots...)
			})
			if err != nil {
				return err
			}
		}
		return saver.Close()
	}
	fmt.Println(run(layers.Layout{Data: 2, Tensor: 2, Zero: 2}, 0, 3))
	fmt.Println(run(layers.Layout{Shards: 2, Slices: 2, Pipeline: 2}, 2, 4))
	// Output:
	// step 0: 2.3876770
	// step 1: 2.2679744
	// step 2: 2.1828642
	// <nil>
	// step 2: 2.1828642
	// step 3: 2.1175461
	// <nil>
}
