package training

import (
	"fmt"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/train"
)

// SmallContext is the length of the sequences that SmallLlama is trained on.
const SmallContext = 128

// SmallLlama is the byte-level model of the experiments: half a million values in
// two layers, wide enough for blocks of 128 to be several in a tensor. Its linear
// layers multiply under recipes, or in FP32 if they are nil.
func SmallLlama(o lab.Options, recipes *nn.FP8) nn.Config {
	c := Llama(128, 2, SmallContext)
	c.Workers, c.FP8 = o.Workers, recipes
	return c
}

// Corpus returns the text of o, all of it to train on.
func Corpus(o lab.Options) (*train.Corpus, error) {
	if len(o.Text.Data) < 2*SmallContext {
		return nil, fmt.Errorf("%s has %d bytes, which is too short to train on %d at a time: name a longer one with --text",
			o.Text.Source, o.Text.Bytes, SmallContext)
	}
	return train.NewCorpus(o.Text.Data, 0, o.Seed)
}

// Shards cuts the batch of a step into those of ranks, [batch, seq] each.
func Shards(c *train.Corpus, step, ranks, batch, seq int) (all []train.Shard, err error) {
	tokens, targets, err := c.Batch(step, ranks*batch, seq)
	if err != nil {
		return nil, err
	}
	for n := batch * seq; len(tokens) > 0; tokens, targets = tokens[n:], targets[n:] {
		all = append(all, train.Shard{Tokens: tokens[:n], Targets: targets[:n]})
	}
	return all, nil
}

// Schedule is the learning rate of the experiments over a number of steps.
func Schedule(steps int) optim.Schedule { return Setup{Steps: steps, Rate: 1e-3}.Schedule() }
