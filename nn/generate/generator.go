package generate

import (
	"context"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/guard"
	"github.com/octavo-fp8/octavo/internal/halves"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Generator runs a model token by token. Make one with [New]. It is for one goroutine at a time,
// and so are its sequences: what runs tokens while another call does, also from Emit or Done of
// a request, is [ErrConcurrent] and changes nothing.
type Generator struct {
	guard guard.Guard

	config           nn.Config
	options          Options
	keyDim, valueDim int // of a head's query or key, and of its value

	table  table // embedding
	blocks []block
	norm   *nn.RMSNorm
	head   linear

	shared nn.Shared // of the routers, whose biases it has
	memory work
}

// block is one layer of the model.
type block struct {
	attentionNorm, mlpNorm   *nn.RMSNorm
	afterAttention, afterMLP *nn.RMSNorm // of results, before they are added; nil: none
	projections              projections
	rotary                   *nn.Rotary
	view                     view
	mixed                    linear
	feedForward              feedForward
}

// projections make queries, keys and values.
type projections interface {
	// project writes them, with positions, for the input in the generator's memory.
	project(ctx context.Context, g *Generator, r *nn.Rotary, e *extension, q, k, v []float32) error

	linears() []*linear
	norms() []*nn.RMSNorm // nil for those that there are not
}

// feedForward is what follows attention.
type feedForward interface {
	// forward writes to y what it makes of the input in the generator's memory.
	forward(ctx context.Context, g *Generator, y []float32) error

	linears() []*linear
}

// New returns a generator of a model. Of the model its sizes, the values of its parameters and
// the biases of its routers count, not the recipes that it trains by. Of values that bfloat16
// has, and of those that are packed, it keeps a copy; what else is multiplied in FP32, and
// routers, norms, biases and sinks, are the model's memory.
//
// The error is [ErrOptions], [ErrBatch], that of Options.Read, or that of the context.
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
	if m.Unread() {
		return nil, optionError("the model's matrices share one memory of zeros, as those of nn.NewUnreadLlama: " +
			"open it without Streamed")
	}
	g := &Generator{config: c, options: o}
	g.config.Workers = o.Workers
	g.keyDim, g.valueDim, _ = c.HeadDims()
	err := g.pack(ctx, m)
	g.options.Read = nil // with the model, which it may hold
	if err != nil {
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

// pack makes the blocks, the last norm, the embedding and the head.
func (g *Generator) pack(ctx context.Context, m *nn.Llama) error {
	total, most := int64(0), 0
	for _, p := range m.Params() {
		total += int64(len(p.Value))
		most = max(most, len(p.Value))
	}
	p := &packer{g: g, ctx: ctx, count: meter.New(ctx, g.options.Progress, "pack", total)}
	if g.options.Read != nil {
		p.values = memory.Large[float32](most)
	}
	all, windowed := g.config.Rotaries()
	for layer, from := range m.Blocks() {
		scores, eps := g.config.Scores(layer), g.config.NormEps
		to := block{
			attentionNorm: p.norm(from.AttentionNorm, eps), mlpNorm: p.norm(from.MLPNorm, eps),
			afterAttention: p.norm(from.AfterAttention, eps), afterMLP: p.norm(from.AfterMLP, eps),
			view: newView(scores), rotary: all,
		}
		if scores.Window > 0 {
			to.rotary = windowed
		}
		if a := from.MLA; a != nil {
			to.projections, to.mixed = p.latent(a), p.linear(a.Output)
			to.view.sinks = p.vector(a.Sinks)
		} else {
			a := from.Attention
			to.projections = &heads{
				p.linear(a.Query), p.linear(a.Key), p.linear(a.Value), p.norm(a.QueryNorm, eps), p.norm(a.KeyNorm, eps),
			}
			to.mixed, to.view.sinks = p.linear(a.Output), p.vector(a.Sinks)
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
	g.norm = p.gain(m.Param(lastNormName), g.config.NormEps)
	embedding, head := m.Param(embeddingName), m.Param(headName)
	values := p.read(embedding, true)
	g.table = p.table(embedding, values)
	if head == nil {
		head = embedding
	} else {
		if p.err == nil {
			p.err = p.count.Add(int64(len(values)))
		}
		values = p.read(head, true)
	}
	g.head = p.weight(head, values, g.options.Head, g.options.RoundHead)
	return p.err
}

// packer makes parts of blocks. After an error it makes nothing.
type packer struct {
	g     *Generator
	ctx   context.Context
	count *meter.Meter
	err   error

	values []float32     // of a matrix that is read
	codes  tensor.Tensor // of one that is packed
}

// read returns the values of a parameter, which are not kept if so is said.
func (p *packer) read(of *nn.Param, passing bool) []float32 {
	values := of.Value
	if p.err != nil || p.g.options.Read == nil {
		return values
	}
	if passing {
		values = p.values[:len(values)]
	}
	p.err = p.g.options.Read(of, values)
	return values
}

// vector returns the values of a bias or of sinks, which are in the model's memory; nil for none.
func (p *packer) vector(of *nn.Param) []float32 {
	if of == nil {
		return nil
	}
	values := p.read(of, false)
	if p.err == nil {
		p.err = p.count.Add(int64(len(values)))
	}
	return values
}

func (p *packer) linear(from *nn.Linear) linear {
	l := p.weight(from.Weight, p.read(from.Weight, true), p.g.options.FP8, false)
	l.bias = p.vector(from.Bias)
	return l
}

// weight returns the layer of a weight: packed under the recipe, unless that is nil; or in
// bfloat16 where that is to be, or has all values; or else in FP32.
func (p *packer) weight(of *nn.Param, values []float32, r *nn.Operands, round bool) linear {
	l := linear{out: of.Rows, in: of.Cols}
	workers := p.g.options.Workers
	switch {
	case p.err != nil:
		return l
	case r != nil:
		if p.quantize(&p.codes, of, values, r.B); p.err == nil {
			l.packed, p.err = gemm.Pack(&p.codes)
		}
	case round || canonical.AllBFloat16(values):
		l.halves = canonical.Pack(values, l.out, l.in, workers)
	default:
		l.values = p.keep(of, values)
	}
	if p.err == nil {
		p.err = p.count.Add(int64(len(values)))
	}
	return l
}

// keep returns a matrix in the model's memory.
func (p *packer) keep(of *nn.Param, values []float32) []float32 {
	if p.g.options.Read != nil {
		copy(of.Value, values)
	}
	return of.Value
}

// quantize quantizes a matrix to t, whose memory it uses.
func (p *packer) quantize(t *tensor.Tensor, of *nn.Param, values []float32, r scaling.Recipe) {
	if cap(t.Codes) < len(values) {
		t.Codes = memory.Large[byte](len(values))
	}
	t.Name, t.Shape = of.Name, append(t.Shape[:0], of.Rows, of.Cols)
	q := scaling.Quantizer{
		Recipe: r, Options: tensor.Options{Op: "pack", Workers: p.g.options.Workers},
	}
	p.err = scaling.Quantize(p.ctx, t, values, q)
}

// table returns the embedding, in the form that the head has.
func (p *packer) table(of *nn.Param, values []float32) table {
	t := table{cols: of.Cols}
	o := &p.g.options
	switch {
	case p.err != nil:
	case o.Head != nil:
		p.quantize(&t.codes, of, values, o.Head.B)
	case o.RoundHead || canonical.AllBFloat16(values):
		t.halves = memory.Large[fp8.BFloat16](len(values))
		parallel.For(of.Rows, 1, o.Workers, func(lo, hi int) {
			row := make([]float32, t.cols)
			for i := lo; i < hi; i++ {
				copy(row, values[i*t.cols:])
				halves.NarrowBF16(t.halves[i*t.cols:][:t.cols], row)
			}
		})
	default:
		t.values = p.keep(of, values)
	}
	return t
}

// norm returns a norm like another one; nil for none.
func (p *packer) norm(from *nn.RMSNorm, eps float64) *nn.RMSNorm {
	if from == nil {
		return nil
	}
	return p.gain(from.Gain, eps)
}

// gain returns the norm of a gain.
func (p *packer) gain(of *nn.Param, eps float64) (to *nn.RMSNorm) {
	values := p.read(of, false)
	if p.err == nil {
		to, p.err = p.g.newNorm(of, eps)
	}
	if p.err == nil {
		p.err = p.count.Add(int64(len(values)))
	}
	return to
}

// newNorm returns a norm with a gain of its own.
func (g *Generator) newNorm(gain *nn.Param, eps float64) (*nn.RMSNorm, error) {
	o := nn.Options{Norms: g.config.Norms, Workers: g.options.Workers}
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
		for _, norm := range append(b.projections.norms(), b.attentionNorm, b.mlpNorm, b.afterAttention, b.afterMLP) {
			if norm != nil {
				n += 4 * int64(len(norm.Gain.Value))
			}
		}
		n += 4 * int64(len(b.view.sinks))
	}
	return n
}
