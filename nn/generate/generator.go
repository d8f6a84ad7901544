package generate

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/nn"
)

// Generator runs a model token by token. Make one with [New]; its methods must not be called
// concurrently, and neither must those of its sequences.
type Generator struct {
	config  nn.Config
	options Options

	table  *nn.Param // embedding
	rotary *nn.Rotary
	blocks []block
	norm   *nn.RMSNorm
	head   linear

	memory memory
}

// block is one layer of the model.
type block struct {
	attentionNorm, mlpNorm   *nn.RMSNorm
	query, key, value, mixed linear
	gate, up, down           linear
}

// New returns a generator of a model. Of the model its sizes and the values of its parameters
// count, not the recipes that it trains by. What is multiplied in FP32 is the model's memory;
// of a model whose weights are packed only the embedding, the head and the norms are kept.
//
// The error is [ErrOptions], [ErrBatch], or that of the context.
func New(ctx context.Context, m *nn.Llama, o Options) (*Generator, error) {
	c := m.Config()
	if c.MLA != nil || c.Experts != nil {
		return nil, optionError("the model has MLA or experts: generating is for those with neither")
	}
	if err := o.check(c.Layers, c.KVHeads); err != nil {
		return nil, err
	}
	g := &Generator{config: c, options: o, table: m.Param(embeddingName)}
	g.config.Workers = o.Workers
	var err error
	g.rotary, err = nn.NewScaledRotary(c.Dim/c.Heads, c.Context, c.RopeTheta, c.RopeScaling)
	if err != nil {
		return nil, err
	}
	if err := g.pack(ctx, m); err != nil {
		return nil, err
	}
	if g.norm, err = g.newNorm(m.Param(lastNormName)); err != nil {
		return nil, err
	}
	head := m.Param(headName)
	if head == nil {
		head = g.table
	}
	g.head, err = newLinear(ctx, head, nil, o.Workers)
	return g, err
}

// The names of a Hugging Face Llama.
const (
	embeddingName = "model.embed_tokens.weight"
	lastNormName  = "model.norm.weight"
	headName      = "lm_head.weight"
)

// pack makes the blocks.
func (g *Generator) pack(ctx context.Context, m *nn.Llama) error {
	total := int64(0)
	for _, b := range m.Blocks() {
		for _, p := range b.Params() {
			total += int64(len(p.Value))
		}
	}
	count := meter.New(ctx, g.options.Progress, "pack", total)
	for _, b := range m.Blocks() {
		var to block
		var err error
		if to.attentionNorm, err = g.newNorm(b.AttentionNorm.Gain); err != nil {
			return err
		}
		if to.mlpNorm, err = g.newNorm(b.MLPNorm.Gain); err != nil {
			return err
		}
		for _, l := range []struct {
			to   *linear
			from *nn.Linear
		}{
			{&to.query, b.Attention.Query}, {&to.key, b.Attention.Key},
			{&to.value, b.Attention.Value}, {&to.mixed, b.Attention.Output},
			{&to.gate, b.MLP.Gate}, {&to.up, b.MLP.Up}, {&to.down, b.MLP.Down},
		} {
			w := l.from.Weight
			if *l.to, err = newLinear(ctx, w, g.options.FP8, g.options.Workers); err != nil {
				return err
			}
			if err := count.Add(int64(len(w.Value))); err != nil {
				return err
			}
		}
		if err := count.Add(2 * int64(g.config.Dim)); err != nil {
			return err
		}
		g.blocks = append(g.blocks, to)
	}
	return nil
}

// newNorm returns a norm of the model's epsilon with a gain of its own.
func (g *Generator) newNorm(gain *nn.Param) (*nn.RMSNorm, error) {
	o := nn.Options{Workers: g.options.Workers}
	n, err := nn.NewRMSNorm(gain.Name, gain.Cols, g.config.NormEps, o)
	if err == nil {
		n.Gain = gain
	}
	return n, err
}

// Config returns the configuration of the model.
func (g *Generator) Config() nn.Config { return g.config }

// WeightBytes returns how many bytes of weights each step reads: those of linear layers, in
// the form in which they are multiplied, and of norms.
func (g *Generator) WeightBytes() int64 {
	n := g.head.bytes() + 4*int64(g.config.Dim)
	for i := range g.blocks {
		b := &g.blocks[i]
		for _, l := range b.linears() {
			n += l.bytes()
		}
		n += 2 * 4 * int64(g.config.Dim)
	}
	return n
}

func (b *block) linears() []*linear {
	return []*linear{&b.query, &b.key, &b.value, &b.mixed, &b.gate, &b.up, &b.down}
}
