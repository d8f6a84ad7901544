package train_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/train"
)

// A model of a few thousand parameters learns to count. The losses are the same
// on every machine, to the last bit.
func Example() {
	text := []byte(strings.Repeat("one two three four five six seven. ", 40))
	corpus, err := train.NewCorpus(text, 200, 1)
	if err != nil {
		log.Fatal(err)
	}
	model, err := nn.NewLlama(nn.Config{Vocab: 256, Dim: 16, Layers: 1, Heads: 2, Hidden: 32, Context: 32}, 1)
	if err != nil {
		log.Fatal(err)
	}
	optimizer := optim.AdamW{WeightDecay: 0.1, Clip: 1}
	schedule := optim.Schedule{Peak: 2e-2, Final: 0.1, Warmup: 10, Steps: 60}
	const batch, seq = 4, 32
	for step := range schedule.Steps {
		tokens, targets, err := corpus.Batch(step, batch, seq)
		if err != nil {
			log.Fatal(err)
		}
		model.ZeroGrad()
		loss, err := model.Loss(context.Background(), tokens, targets, batch, seq)
		if err != nil {
			log.Fatal(err)
		}
		if err := model.Backward(context.Background()); err != nil {
			log.Fatal(err)
		}
		norm, err := optimizer.Step(context.Background(), model.Params(), schedule.At(step))
		if err != nil {
			log.Fatal(err)
		}
		if step%15 == 0 {
			fmt.Printf("step %2d  loss %.5f  gradient norm %.4f\n", step, loss, norm)
		}
	}
	tokens, targets, err := corpus.HeldOut(0, batch, seq)
	if err != nil {
		log.Fatal(err)
	}
	loss, err := model.Loss(context.Background(), tokens, targets, batch, seq)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("held out loss %.5f\n", loss)
	// Output:
	// step  0  loss 5.56958  gradient norm 1.0010
	// step 15  loss 2.00563  gradient norm 0.9217
	// step 30  loss 0.76011  gradient norm 0.6943
	// step 45  loss 0.39846  gradient norm 1.0528
	// held out loss 0.22570
}
