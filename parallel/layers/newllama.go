package layers

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// newPart returns what a rank has of a model, with weights of zero.
func newPart(cfg nn.Config, l *Layout, rank int, rotary *nn.Rotary) (*llamaPart, error) {
	p := &llamaPart{cfg: cfg, layout: l, seat: l.seat(rank)}
	var err error
	if p.seat.stage == 0 {
		if p.embedding, err = p.newEmbedding(); err != nil {
			return nil, err
		}
	}
	for chunk := range l.Chunks {
		c := &llamaChunk{llamaPart: p, first: p.embedding != nil && chunk == 0}
		p.chunks = append(p.chunks, c)
		stage, per := chunk*l.Pipeline+p.seat.stage, cfg.Layers/(l.Pipeline*l.Chunks)
		for layer := stage * per; layer < (stage+1)*per; layer++ {
			b, err := p.newBlock(layer, rotary)
			if err != nil {
				return nil, err
			}
			c.blocks = append(c.blocks, b)
		}
	}
	if p.seat.stage == l.Pipeline-1 {
		p.chunks[l.Chunks-1].last = true
		if p.norm, err = p.newNorm("model.norm.weight"); err != nil {
			return nil, err
		}
		if err := p.addHead(); err != nil {
			return nil, err
		}
		p.loss = crossEntropy{Slices: l.sums(lossSums), Vocab: cfg.Vocab}
	}
	p.collect()
	for _, q := range p.all() {
		q.share(l, p.seat)
	}
	for _, q := range p.tied {
		q.grads = nil // they go to the first stage
	}
	return p, nil
}

func (p *llamaPart) newEmbedding() (*embedding, error) {
	const name = "model.embed_tokens.weight"
	o := nn.Options{Shared: &p.shared, Operators: p.cfg.Operators, Workers: p.cfg.Workers}
	s := p.sums(forwardSums)
	e, err := newEmbedding(p.seat.tensor, p.layout.Tensor, name, p.cfg.Vocab, p.cfg.Dim, s, o)
	if err == nil {
		e.Sequence = p.layout.Sequence
	}
	return e, err
}

// sums returns slices whose sums are rows of the residual stream.
func (p *llamaPart) sums(name string) collective.Slices {
	s := p.layout.sums(name)
	s.Cols = p.cfg.Dim
	return s
}

// named returns the exchange of a name for a tensor of rows of the residual stream.
func (p *llamaPart) named(name, tensor string) collective.Exchange {
	x := p.layout.exchange(name)
	x.Name, x.Cols = tensor, p.cfg.Dim
	return x
}

// addHead adds the output head. A tied one multiplies by the slices of the embedding, or of
// a copy of its table where that is at another rank.
func (p *llamaPart) addHead() (err error) {
	const name = "lm_head.weight"
	s, o := p.sums(backwardSums), p.cfg.HeadOptions(&p.shared)
	part := func(i, lo, hi int) (*nn.Linear, error) {
		return nn.NewLinear(fmt.Sprintf("%s.slice.%d.weight", layerOf(name), i), hi-lo, p.cfg.Dim, o)
	}
	if p.cfg.TieHead {
		table := p.embedding
		if table == nil {
			if table, err = p.newEmbedding(); err != nil {
				return err
			}
			for _, c := range table.cuts() {
				p.tied = append(p.tied, &partParam{cut: c})
			}
		}
		part = func(i, _, _ int) (*nn.Linear, error) {
			return nn.NewLinearOf(name, table.Parts[i-table.first].Table, o)
		}
	}
	p.head, err = newLinear(p.seat.tensor, p.layout.Tensor, name, p.cfg.Vocab, p.cfg.Dim, s, part)
	if err == nil {
		p.head.Sequence = p.layout.Sequence
	}
	return err
}

func (p *llamaPart) newNorm(name string) (norm, error) {
	o := nn.Options{Shared: &p.shared, Operators: p.cfg.Operators, Workers: p.cfg.Workers}
	if !p.layout.Sequence {
		n, err := nn.NewRMSNorm(name, p.cfg.Dim, p.cfg.NormEps, o)
		return wholeNorm{n}, err
	}
	s := p.layout.sums(gatheredRows)
	return newRMSNorm(p.seat.tensor, p.layout.Tensor, name, p.cfg.Dim, p.cfg.NormEps, s, o)
}

// newBlock returns a layer of the model.
func (p *llamaPart) newBlock(layer int, rotary *nn.Rotary) (b *llamaBlock, err error) {
	prefix := "model.layers." + strconv.Itoa(layer) + "."
	b = new(llamaBlock)
	if b.attentionNorm, err = p.newNorm(prefix + "input_layernorm.weight"); err != nil {
		return nil, err
	}
	if b.attention, err = p.newAttention(layer, prefix+"self_attn.", rotary); err != nil {
		return nil, err
	}
	if b.mlpNorm, err = p.newNorm(prefix + "post_attention_layernorm.weight"); err != nil {
		return nil, err
	}
	prefix += "mlp."
	s := p.sums(forwardSums)
	s.Align = p.layout.Align
	if p.cfg.Experts != nil && layer >= p.cfg.Dense {
		b.mixture, err = p.newMixture(layer, prefix, s)
		return b, err
	}
	o := p.cfg.LayerOptions(layer, &p.shared)
	b.mlp, err = NewMLP(p.seat.tensor, p.layout.Tensor, prefix, p.cfg.Dim, p.cfg.Hidden, s, o)
	if err != nil {
		return nil, err
	}
	b.mlp.Sequence, b.mlp.Gradient = p.layout.Sequence, p.named(backwardSums, b.mlp.Gradient.Name)
	return b, nil
}

func (p *llamaPart) newAttention(layer int, prefix string, rotary *nn.Rotary) (headsLayer, error) {
	c, s, o := p.cfg, p.sums(forwardSums), p.cfg.LayerOptions(layer, &p.shared)
	if c.MLA == nil {
		a, err := newAttention(p.seat.tensor, p.layout.Tensor, prefix, nn.AttentionConfig{
			Dim: c.Dim, Heads: c.Heads, KVHeads: c.KVHeads, Rotary: rotary,
		}, s, o)
		if err != nil {
			return nil, err
		}
		a.Sequence, a.Gradient = p.layout.Sequence, p.named(backwardSums, a.Gradient.Name)
		return a, nil
	}
	m := *c.MLA
	m.Dim, m.Heads, m.Rotary = c.Dim, c.Heads, rotary
	m.NormEps = cmp.Or(m.NormEps, c.NormEps)
	a, err := newMLA(p.seat.tensor, p.layout.Tensor, prefix, m, s, o)
	if err != nil {
		return nil, err
	}
	a.Sequence, a.Gradient = p.layout.Sequence, p.named(backwardSums, a.Gradient.Name)
	return a, nil
}

func (p *llamaPart) newMixture(layer int, prefix string, s collective.Slices) (*mixture, error) {
	l, c := p.layout, *p.cfg.Experts
	c.Dim = p.cfg.Dim
	e := Experts{
		SumAtSource: l.SumAtSource,
		Dispatch:    p.named(expertTokens, prefix+expertTokens),
		Combine:     p.named(expertResults, prefix+expertResults),

		CombineGradient:  p.named(expertResultsGrads, prefix+expertResultsGrads),
		DispatchGradient: p.named(expertTokensGrads, prefix+expertTokensGrads),
	}
	m, err := newMixture(
		place{p.seat.tensor, l.Tensor}, place{p.seat.data % l.Expert, l.Expert}, prefix, c, s, e,
		p.cfg.LayerOptions(layer, &p.shared), p.cfg.LayerOptions(layer, &p.experts),
	)
	if err != nil {
		return nil, err
	}
	m.source = p.beginSource
	for _, x := range append(m.Experts, m.Shared) {
		if x != nil {
			x.Gradient = p.named(backwardSums, x.Gradient.Name)
		}
	}
	return m, nil
}
