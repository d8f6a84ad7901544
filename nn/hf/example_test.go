package hf_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/hf"
)

// A model is written as transformers writes it, loaded in FP8, and calibrated.
func Example() {
	dir, err := os.MkdirTemp("", "model")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := run(context.Background(), dir); err != nil {
		log.Fatal(err)
	}
	// Output:
	// [5, 256] logits
	// 15 inputs
}

func run(ctx context.Context, dir string) error {
	model, err := nn.NewLlama(nn.Config{
		Vocab: 256, Dim: 32, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 64, Context: 128,
	}, 1)
	if err != nil {
		return err
	}
	if err := hf.Save(ctx, model, dir, hf.SaveOptions{Bytes: true}); err != nil {
		return err
	}

	files, err := checkpoint.Open(dir)
	if err != nil {
		return err
	}
	defer files.Close()
	fp8 := nn.DefaultFP8()
	model, err = hf.Load(ctx, files, hf.Options{Configure: func(c *nn.Config) { c.FP8 = &fp8 }})
	if err != nil {
		return err
	}
	tokens := []int32{'o', 'c', 't', 'a', 'v'}
	logits, err := model.Logits(ctx, tokens, 1, len(tokens))
	if err != nil {
		return err
	}
	fmt.Printf("[%d, %d] logits\n", len(tokens), len(logits)/len(tokens))

	amax, err := hf.Calibrate(ctx, model, [][]int32{tokens}, hf.CalibrationOptions{})
	if err != nil {
		return err
	}
	fmt.Println(len(amax), "inputs") // of seven layers in each block, and of the head
	return nil
}
