package lab

import (
	"fmt"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/train"
)

// smallContext is the length of the sequences that smallLlama is trained on.
const smallContext = 128

// smallLlama is the byte-level model of the experiments: half a million values in
// two layers, wide enough for blocks of 128 to be several in a tensor. Its linear
// layers multiply under recipes, or in FP32 if they are nil.
func smallLlama(o Options, recipes *nn.FP8) nn.Config {
	c := llama(128, 2, smallContext)
	c.Workers, c.FP8 = o.Workers, recipes
	return c
}

// corpusOf returns the text of o, all of it to train on.
func corpusOf(o Options) (*train.Corpus, error) {
	if len(o.Text.Data) < 2*smallContext {
		return nil, fmt.Errorf("%s has %d bytes, which is too short to train on %d at a time: name a longer one with --text",
			o.Text.Source, o.Text.Bytes, smallContext)
	}
	return train.NewCorpus(o.Text.Data, 0, o.Seed)
}

// scheduleOf is the learning rate of the experiments over a number of steps.
func scheduleOf(steps int) optim.Schedule { return lesson{steps: steps, rate: 1e-3}.schedule() }
