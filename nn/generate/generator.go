package generate

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/guard"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/nn"
)

// Generator runs a model token by token. Make one with [New]. It is for one goroutine at a time,
// and so are its sequences: what runs tokens while another call does, also from Emit or Done of
// a request, is [ErrConcurrent] and changes nothing.
type Generator struct {
	guard guard.Guard

	config           nn.Config
	options          Options
	keyDim, valueDim int // of a head's query or key, and of its value

	table  *nn.Param // embedding
	rotary *nn.Rotary
	blocks []block
	norm   *nn.RMSNorm
	head   linear

	shared nn.Shared // of the routers, whose biases it has
	memory memory
}

// block is one layer of the model.
type block struct {
	attentionNorm, mlpNorm *nn.RMSNorm
	projections            projections
	mixed                  linear
	feedForward            feedForward
}

// projections make queries, keys and values.
type projections interface {
	// project writes them, with positions, for the input in the generator's memory.
	project(ctx context.Context, g *Generator, e *extension, q, k, v []float32) error

	linears() []*linear
	norms() []*nn.RMSNorm
}

// feedForward is what follows attention.
type feedForward interface {
	// forward writes to y what it makes of the input in the generator's memory.
	forward(ctx context.Context, g *Generator, y []float32) error

	linears() []*linear
}

// New returns a generator of a model. Of the model its sizes, the values of its parameters and
// the biases of its routers count, not the recipes that it trains by. What is multiplied in
// FP32 is the model's memory; of a model whose weights are packed only the embedding, the head,
// the routers and the norms are kept.
//
// The error is [ErrOptions], [ErrBatch], or that of the context.
func New(ctx context.Context, m *nn.Llama, o Options) (*Generator, error) {
	c := m.Config()
	if x := c.Experts; x != nil && x.CapacityFactor != 0 {
		return nil, optionError("the model's experts have a CapacityFactor of %v: what they drop "+
			"depends on what is run together: generating is for those that drop nothing",
			x.CapacityFactor)
	}
	if err := o.check(c.Layers, c.KVHeads); err != nil {
		return nil, err
	}
	g := &Generator{config: c, options: o, table: m.Param(embeddingName)}
	g.config.Workers = o.Workers
	g.keyDim = c.Dim / c.Heads
	g.valueDim = g.keyDim
	rotated := g.keyDim
	if a := c.MLA; a != nil {
		g.keyDim, g.valueDim, rotated = a.NoPE+a.RoPE, a.Value, a.RoPE
	}
	var err error
	g.rotary, err = nn.NewScaledRotary(rotated, c.Context, c.RopeTheta, c.RopeScaling)
	if err != nil {
		return nil, err
	}
	if err := g.pack(ctx, m); err != nil {
		return nil, err
	}
	if g.norm, err = g.newNorm(m.Param(lastNormName), c.NormEps); err != nil {
		return nil, err
	}
	head := m.Param(headName)
	if head == nil {
		head = g.table
	}
	if g.head, err = newLinear(ctx, head, nil, o.Workers); err != nil {
		return nil, err
	}
	return g, g.takeBiases(m)
}

// takeBiases gives the routers the biases of the model's.
func (g *Generator) takeBiases(m *nn.Llama) error {
	state := g.shared.Scaling().State()
	state.Routers = m.Shared().Scaling().State().Routers
	return g.shared.Scaling().Restore(state)
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
	p := &packer{g: g, ctx: ctx, count: meter.New(ctx, g.options.Progress, "pack", total)}
	for _, from := range m.Blocks() {
		to := block{
			attentionNorm: p.norm(from.AttentionNorm, g.config.NormEps),
			mlpNorm:       p.norm(from.MLPNorm, g.config.NormEps),
		}
		if from.MLA != nil {
			to.projections, to.mixed = p.latent(from.MLA), p.linear(from.MLA.Output)
		} else {
			a := from.Attention
			to.projections = &heads{p.linear(a.Query), p.linear(a.Key), p.linear(a.Value)}
			to.mixed = p.linear(a.Output)
		}
		if from.Experts != nil {
			to.feedForward = p.experts(from.Experts)
		} else {
			to.feedForward = p.mlp(from.MLP)
		}
		if p.err != nil {
			return p.err
		}
		g.blocks = append(g.blocks, to)
	}
	return nil
}

// packer makes parts of blocks. After an error it makes nothing.
type packer struct {
	g     *Generator
	ctx   context.Context
	count *meter.Meter
	err   error
}

func (p *packer) add(values []float32, err error) {
	if p.err = err; err == nil {
		p.err = p.count.Add(int64(len(values)))
	}
}

func (p *packer) linear(from *nn.Linear) (to linear) {
	if p.err == nil {
		var err error
		to, err = newLinear(p.ctx, from.Weight, p.g.options.FP8, p.g.options.Workers)
		p.add(from.Weight.Value, err)
	}
	return to
}

func (p *packer) norm(from *nn.RMSNorm, eps float64) (to *nn.RMSNorm) {
	if p.err == nil {
		var err error
		to, err = p.g.newNorm(from.Gain, eps)
		p.add(from.Gain.Value, err)
	}
	return to
}

// newNorm returns a norm with a gain of its own.
func (g *Generator) newNorm(gain *nn.Param, eps float64) (*nn.RMSNorm, error) {
	o := nn.Options{Workers: g.options.Workers}
	n, err := nn.NewRMSNorm(gain.Name, gain.Cols, eps, o)
	if err == nil {
		n.Gain = gain
	}
	return n, err
}

// Config returns the configuration of the model.
func (g *Generator) Config() nn.Config { return g.config }

// WeightBytes returns how many bytes of weights each step reads: those of linear layers, in
// the form in which they are multiplied, of routers and of norms. All experts count, although
// a step of few requests reads those alone that are chosen.
func (g *Generator) WeightBytes() int64 {
	n := g.head.bytes() + 4*int64(g.config.Dim)
	for i := range g.blocks {
		b := &g.blocks[i]
		layers := append(b.projections.linears(), &b.mixed)
		for _, l := range append(layers, b.feedForward.linears()...) {
			n += l.bytes()
		}
		for _, norm := range append(b.projections.norms(), b.attentionNorm, b.mlpNorm) {
			n += 4 * int64(len(norm.Gain.Value))
		}
	}
	return n
}
