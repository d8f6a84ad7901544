package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/nn"
)

// model predicts the character that follows a window of characters, after Bengio et
// al. (2003): the embeddings of the window, side by side, go through a linear layer and
// then through blocks of RMSNorm and SwiGLU with residual connections.
type model struct {
	config
	shared nn.Shared

	embedding *nn.Embedding
	input     *nn.Linear // all embeddings of a window -> dim
	blocks    []*block
	norm      *nn.RMSNorm
	head      *nn.Linear
	loss      nn.CrossEntropy

	embedded, x, normed, logits     []float32
	dEmbedded, dX, dNormed, dLogits []float32
	rows                            int
}

// config has the sizes that a checkpoint of the model keeps.
type config struct {
	Vocab  int `json:"vocab"`
	Window int `json:"window"`
	Dim    int `json:"dim"`
	Blocks int `json:"blocks"`
}

// block adds mlp(norm(x)) to x.
type block struct {
	norm             *nn.RMSNorm
	mlp              *nn.MLP
	normed, branch   []float32
	dNormed, dBranch []float32
}

// newModel returns a model with random matrices, whose linear layers multiply in FP8.
func newModel(c config, seed uint64) (*model, error) {
	m := &model{config: c}
	recipes := nn.DefaultFP8()
	o := nn.Options{Shared: &m.shared, FP8: &recipes}
	var err error
	if m.embedding, err = nn.NewEmbedding("embedding.weight", c.Vocab, c.Dim, o); err != nil {
		return nil, err
	}
	if m.input, err = nn.NewLinear("input.weight", c.Dim, c.Window*c.Dim, o); err != nil {
		return nil, err
	}
	for i := range c.Blocks {
		prefix := fmt.Sprintf("blocks.%d.", i)
		b := &block{}
		if b.norm, err = nn.NewRMSNorm(prefix+"norm.weight", c.Dim, 0, o); err != nil {
			return nil, err
		}
		if b.mlp, err = nn.NewMLP(prefix, c.Dim, 2*c.Dim, o); err != nil {
			return nil, err
		}
		m.blocks = append(m.blocks, b)
	}
	if m.norm, err = nn.NewRMSNorm("norm.weight", c.Dim, 0, o); err != nil {
		return nil, err
	}
	if m.head, err = nn.NewLinear("head.weight", c.Vocab, c.Dim, nn.Options{Shared: &m.shared}); err != nil {
		return nil, err
	}
	for i, p := range m.Params() {
		if p.Decay { // the gains of norms stay 1
			p.Randomize(seed, uint64(i), float32(1/math.Sqrt(float64(p.Cols))))
		}
	}
	return m, nil
}

// Params, Shared and Describe make it a train.Model: it can be evaluated, saved and
// trained by parallel workers.

func (m *model) Params() []*nn.Param {
	params := []*nn.Param{m.embedding.Table, m.input.Weight}
	for _, b := range m.blocks {
		params = append(append(params, b.norm.Gain), b.mlp.Params()...)
	}
	return append(params, m.norm.Gain, m.head.Weight)
}

func (m *model) Shared() *nn.Shared { return &m.shared }

func (m *model) Describe() nn.Description {
	return nn.Description{Kind: "window", Version: 1, Config: m.config}
}

// forward returns the loss of targets, one for each window of tokens, and leaves what
// the model expects in logits.
func (m *model) forward(ctx context.Context, tokens, targets []int32) (float32, error) {
	m.rows = len(targets)
	m.embedded = grow(m.embedded, len(tokens)*m.Dim)
	m.x = grow(m.x, m.rows*m.Dim)
	m.normed = grow(m.normed, m.rows*m.Dim)
	m.logits = grow(m.logits, m.rows*m.Vocab)

	if err := m.embedding.Forward(ctx, m.embedded, tokens); err != nil {
		return 0, err
	}
	// Row after row, the embeddings of a window are the row of the next layer's input.
	if err := m.input.Forward(ctx, m.x, m.embedded, m.rows); err != nil {
		return 0, err
	}
	x := m.x
	for _, b := range m.blocks {
		y, err := b.forward(ctx, x, m.rows)
		if err != nil {
			return 0, err
		}
		x = y
	}
	if err := m.norm.Forward(ctx, m.normed, x); err != nil {
		return 0, err
	}
	if err := m.head.Forward(ctx, m.logits, m.normed, m.rows); err != nil {
		return 0, err
	}
	return m.loss.Forward(ctx, m.logits, targets, m.Vocab)
}

// backward adds the gradients of the last forward.
func (m *model) backward(ctx context.Context) error {
	m.dLogits = grow(m.dLogits, len(m.logits))
	m.dNormed = grow(m.dNormed, len(m.normed))
	m.dX = grow(m.dX, len(m.x))
	m.dEmbedded = grow(m.dEmbedded, len(m.embedded))

	m.shared.Scaling().BeginBackward()
	if err := m.loss.Backward(ctx, m.dLogits, 1); err != nil {
		return err
	}
	if err := m.head.Backward(ctx, m.dNormed, m.dLogits); err != nil {
		return err
	}
	if err := m.norm.Backward(ctx, m.dX, m.dNormed); err != nil {
		return err
	}
	for _, b := range slices.Backward(m.blocks) {
		if err := b.backward(ctx, m.dX); err != nil {
			return err
		}
	}
	if err := m.input.Backward(ctx, m.dEmbedded, m.dX); err != nil {
		return err
	}
	return m.embedding.Backward(ctx, m.dEmbedded)
}

// forward returns x + mlp(norm(x)). Layers keep their input until Backward, so that it
// is not written over.
func (b *block) forward(ctx context.Context, x []float32, rows int) ([]float32, error) {
	b.normed, b.branch = grow(b.normed, len(x)), grow(b.branch, len(x))
	if err := b.norm.Forward(ctx, b.normed, x); err != nil {
		return nil, err
	}
	if err := b.mlp.Forward(ctx, b.branch, b.normed, rows); err != nil {
		return nil, err
	}
	add(b.branch, x)
	return b.branch, nil
}

// backward replaces the gradient of the result by that of x.
func (b *block) backward(ctx context.Context, dx []float32) error {
	b.dNormed, b.dBranch = grow(b.dNormed, len(dx)), grow(b.dBranch, len(dx))
	if err := b.mlp.Backward(ctx, b.dNormed, dx); err != nil {
		return err
	}
	if err := b.norm.Backward(ctx, b.dBranch, b.dNormed); err != nil {
		return err
	}
	add(dx, b.dBranch)
	return nil
}

// grow returns a slice of n values, in the memory of s if there is enough.
func grow(s []float32, n int) []float32 { return slices.Grow(s[:0], n)[:n] }

func add(x, y []float32) {
	for i, v := range y {
		x[i] += v
	}
}
