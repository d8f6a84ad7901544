package train_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/train"
)

// A run with moments in FP8 is stopped after two steps. Another process opens its
// checkpoint, makes a model like the one that was saved, and takes the third.
func ExampleSaveCheckpoint() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "run.safetensors")

	model, err := nn.NewLlama(nn.Config{Vocab: 256, Dim: 16, Layers: 1, Heads: 2, Hidden: 24, Context: 32}, 1)
	if err != nil {
		log.Fatal(err)
	}
	optimizer := optim.AdamW{Clip: 1, Moments: optim.Moments{Format: optim.MomentsFP8}}
	position := train.Position{Seed: 7, Batch: 2, Seq: 32, Schedule: optim.Schedule{Peak: 0.01, Warmup: 5}}
	advance(model, &optimizer, &position, 2)
	if err := train.SaveCheckpoint(context.Background(), path, model, &optimizer, position); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("one go:  %.7f\n", advance(model, &optimizer, &position, 1))

	saved, err := train.OpenCheckpoint(path)
	if err != nil {
		log.Fatal(err)
	}
	defer saved.Close()
	again, err := saved.NewLlama(0)
	if err != nil {
		log.Fatal(err)
	}
	resumed := optim.AdamW{Clip: 1, Moments: optim.Moments{Format: optim.MomentsFP8}}
	if err := saved.Restore(context.Background(), again, &resumed); err != nil {
		log.Fatal(err)
	}
	fmt.Println("steps:  ", resumed.Steps())
	fmt.Printf("resumed: %.7f\n", advance(again, &resumed, &saved.Position, 1))
	// Output:
	// one go:  5.4138212
	// steps:   2
	// resumed: 5.4138212
}

// advance takes n steps and returns the last loss.
func advance(model *nn.Llama, optimizer *optim.AdamW, position *train.Position, n int) (loss float32) {
	corpus, err := train.NewCorpus([]byte("It was the best of times, it was the worst of times, it was the age of wisdom."), 0, position.Seed)
	if err != nil {
		log.Fatal(err)
	}
	for range n {
		tokens, targets, err := corpus.Batch(position.Step, position.Batch, position.Seq)
		if err != nil {
			log.Fatal(err)
		}
		model.ZeroGrad()
		if loss, err = model.Loss(context.Background(), tokens, targets, position.Batch, position.Seq); err != nil {
			log.Fatal(err)
		}
		if err := model.Backward(context.Background()); err != nil {
			log.Fatal(err)
		}
		if _, err := optimizer.Step(context.Background(), model.Params(), position.Schedule.At(position.Step)); err != nil {
			log.Fatal(err)
		}
		model.EndStep()
		position.Step++
	}
	return loss
}

// A run whose checkpoints are written beside it, by three ranks each, and one that goes on
// with the newest.
func ExampleSaver() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	directory := train.Directory{Path: dir, Keep: 2, Ranks: 3}
	model, err := nn.NewLlama(nn.Config{Vocab: 256, Dim: 16, Layers: 1, Heads: 2, Hidden: 24, Context: 32}, 1)
	if err != nil {
		log.Fatal(err)
	}
	optimizer := new(optim.AdamW)

	saver := train.Saver{Interval: 10} // the most steps that a kill loses
	snapshot := train.Snapshot{Beside: true}
	for step := 1; step <= 10; step++ {
		// Here the model would learn.
		if !saver.Due(step) {
			continue
		}
		_, err := saver.Save(ctx, func() error {
			return snapshot.Take(model, optimizer, train.Position{Step: step})
		}, func(ctx context.Context) error {
			return directory.Save(ctx, &snapshot)
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	if err := saver.Close(); err != nil {
		log.Fatal(err)
	}

	passedOver, err := directory.Resume(func(c *train.Checkpoint) error {
		fmt.Println("after step", c.Position.Step)
		return c.Restore(ctx, model, optimizer)
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(passedOver), "of no use")
	// Output:
	// after step 10
	// 0 of no use
}
