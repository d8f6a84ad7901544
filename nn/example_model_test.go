package nn_test

import (
	"context"
	"fmt"
	"log"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

// classifier is a model of its own: it reads a sequence and says for each token which
// of three kinds it is. Its linear layers are in FP8.
type classifier struct {
	shared nn.Shared
	embed  *nn.Embedding
	block  *nn.Block
	norm   *nn.RMSNorm
	head   *nn.Linear
	loss   nn.CrossEntropy
}

const vocab, dim, classes, batch, seq = 16, 32, 3, 4, 8

func newClassifier() (*classifier, error) {
	c := new(classifier)
	recipes := nn.DefaultFP8()
	o := nn.Options{Shared: &c.shared, FP8: &recipes}
	rotary, err := nn.NewRotary(dim/2, seq, 0)
	if err != nil {
		return nil, err
	}
	if c.embed, err = nn.NewEmbedding("embed.weight", vocab, dim, o); err != nil {
		return nil, err
	}
	shape := nn.BlockConfig{AttentionConfig: nn.AttentionConfig{Dim: dim, Heads: 2, Rotary: rotary}, Hidden: 64}
	if c.block, err = nn.NewBlock("block.", shape, o); err != nil {
		return nil, err
	}
	if c.norm, err = nn.NewRMSNorm("norm.weight", dim, 0, o); err != nil {
		return nil, err
	}
	if c.head, err = nn.NewLinear("head.weight", classes, dim, nn.Options{Shared: &c.shared}); err != nil {
		return nil, err
	}
	for i, p := range c.params() {
		if p.Decay {
			p.Randomize(1, uint64(i), 0.1)
		}
	}
	return c, nil
}

func (c *classifier) params() []*nn.Param {
	params := append([]*nn.Param{c.embed.Table}, c.block.Params()...)
	return append(params, c.norm.Gain, c.head.Weight)
}

// step computes the loss of a batch, and adds its gradients to those of the parameters.
func (c *classifier) step(ctx context.Context, tokens, kinds []int32) (float32, error) {
	const rows = batch * seq
	x, y, z := make([]float32, rows*dim), make([]float32, rows*dim), make([]float32, rows*dim)
	logits := make([]float32, rows*classes)
	if err := c.embed.Forward(ctx, x, tokens); err != nil {
		return 0, err
	}
	if err := c.block.Forward(ctx, y, x, batch, seq); err != nil {
		return 0, err
	}
	if err := c.norm.Forward(ctx, z, y); err != nil {
		return 0, err
	}
	if err := c.head.Forward(ctx, logits, z, rows); err != nil {
		return 0, err
	}
	loss, err := c.loss.Forward(ctx, logits, kinds, classes)
	if err != nil {
		return 0, err
	}

	c.shared.Scaling().BeginBackward()
	dLogits, dz, dy := make([]float32, rows*classes), make([]float32, rows*dim), make([]float32, rows*dim)
	if err := c.loss.Backward(ctx, dLogits, 1); err != nil {
		return 0, err
	}
	if err := c.head.Backward(ctx, dz, dLogits); err != nil {
		return 0, err
	}
	if err := c.norm.Backward(ctx, dy, dz); err != nil {
		return 0, err
	}
	if err := c.block.Backward(ctx, dy, dy); err != nil {
		return 0, err
	}
	return loss, c.embed.Backward(ctx, dy)
}

// A model that is not a Llama is put together from layers and trained. It learns what
// depends on the token before: whether a token is the larger, the smaller or the same.
// The first token of a sequence has none before it, and does not count.
func Example() {
	ctx := context.Background()
	model, err := newClassifier()
	if err != nil {
		log.Fatal(err)
	}
	optimizer := optim.AdamW{Clip: 1}
	tokens, kinds := make([]int32, batch*seq), make([]int32, batch*seq)
	for step := range 301 {
		for i := range tokens {
			tokens[i] = int32((i*i*7 + i*step + step*step*3) % 11)
			switch {
			case i%seq == 0:
				kinds[i] = nn.IgnoreIndex
			case tokens[i] > tokens[i-1]:
				kinds[i] = 0
			case tokens[i] < tokens[i-1]:
				kinds[i] = 1
			default:
				kinds[i] = 2
			}
		}
		nn.ZeroGrad(model.params())
		loss, err := model.step(ctx, tokens, kinds)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := optimizer.Step(ctx, model.params(), 1e-3); err != nil {
			log.Fatal(err)
		}
		model.shared.Scaling().EndStep()
		if step%100 == 0 {
			fmt.Printf("step %3d  loss %.4f\n", step, loss)
		}
	}
	// Output:
	// step   0  loss 0.9937
	// step 100  loss 0.1386
	// step 200  loss 0.0039
	// step 300  loss 0.0006
}
