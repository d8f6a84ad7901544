package generate

import (
	"cmp"
	"context"

	"github.com/octavo-fp8/octavo/nn"
)

// heads are the projections of grouped queries.
type heads struct {
	query, key, value  linear
	queryNorm, keyNorm *nn.RMSNorm // of each head; nil: none
}

func (h *heads) linears() []*linear   { return []*linear{&h.query, &h.key, &h.value} }
func (h *heads) norms() []*nn.RMSNorm { return []*nn.RMSNorm{h.queryNorm, h.keyNorm} }

func (h *heads) project(
	ctx context.Context, g *Generator, r *nn.Rotary, e *extension, q, k, v []float32,
) error {
	in, c := &g.memory.input, &g.config
	err := cmp.Or(h.query.normed(ctx, g, h.queryNorm, q), h.key.normed(ctx, g, h.keyNorm, k),
		h.value.multiply(ctx, v, in, c.Workers))
	if err != nil {
		return err
	}
	return cmp.Or(g.rotate(r, q, c.Heads, e), g.rotate(r, k, c.KVHeads, e))
}

// normed writes what a norm of heads, if there is one, makes of the product of the input.
func (l *linear) normed(ctx context.Context, g *Generator, norm *nn.RMSNorm, y []float32) error {
	if norm == nil {
		return l.multiply(ctx, y, &g.memory.input, g.config.Workers)
	}
	raw := grow(&g.memory.latent, len(y))
	return cmp.Or(l.multiply(ctx, raw, &g.memory.input, g.config.Workers), norm.Forward(ctx, y, raw))
}

// rotate rotates the heads of the rows of x by the positions that these have.
func (g *Generator) rotate(r *nn.Rotary, x []float32, heads int, e *extension) error {
	width, lo := len(x)/e.rows, 0
	for i, s := range e.sequences {
		n := len(e.tokens[i])
		hi := lo + n
		err := r.RotateFrom(x[lo*width:hi*width], heads, s.tokens, s.length(n), g.config.Workers)
		if err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// latent are the projections of latent attention, as those of [nn.MLA].
type latent struct {
	queryDown linear      // of nothing where there is no queryNorm
	queryNorm *nn.RMSNorm // nil: queries are made of the input
	query     linear
	kvDown    linear
	kvNorm    *nn.RMSNorm
	kv        linear
}

func (p *packer) latent(from *nn.MLA) *latent {
	c := &p.g.config
	eps := cmp.Or(c.MLA.NormEps, c.NormEps)
	to := &latent{
		query: p.linear(from.Query), kvDown: p.linear(from.KVDown),
		kvNorm: p.norm(from.KVNorm, eps), kv: p.linear(from.KV),
	}
	if from.QueryDown != nil {
		to.queryDown, to.queryNorm = p.linear(from.QueryDown), p.norm(from.QueryNorm, eps)
	}
	return to
}

func (l *latent) linears() []*linear {
	layers := []*linear{&l.query, &l.kvDown, &l.kv}
	if l.queryNorm != nil {
		layers = append(layers, &l.queryDown)
	}
	return layers
}

func (l *latent) norms() []*nn.RMSNorm { return []*nn.RMSNorm{l.queryNorm, l.kvNorm} }

func (l *latent) project(
	ctx context.Context, g *Generator, r *nn.Rotary, e *extension, q, k, v []float32,
) error {
	if err := l.queries(ctx, g, r, e, q); err != nil {
		return err
	}
	m, c, a := &g.memory, &g.config, g.config.MLA
	down := grow(&m.down, e.rows*l.kvDown.out)
	if err := l.kvDown.multiply(ctx, down, &m.input, c.Workers); err != nil {
		return err
	}
	raw, shared := grow(&m.latent, e.rows*a.KVRank), grow(&m.rotated, e.rows*a.RoPE)
	for row := range e.rows {
		from := down[row*l.kvDown.out:][:l.kvDown.out]
		copy(raw[row*a.KVRank:], from[:a.KVRank])
		copy(shared[row*a.RoPE:], from[a.KVRank:])
	}
	if err := g.rotate(r, shared, 1, e); err != nil {
		return err
	}
	up := grow(&m.up, e.rows*l.kv.out)
	if err := l.fromLatent(ctx, g, &l.kv, l.kvNorm, up, raw, e.rows); err != nil {
		return err
	}
	for i := range e.rows * c.Heads {
		from, key := up[i*(a.NoPE+a.Value):], k[i*g.keyDim:][:g.keyDim]
		copy(key[:a.NoPE], from)
		copy(key[a.NoPE:], shared[i/c.Heads*a.RoPE:])
		copy(v[i*a.Value:][:a.Value], from[a.NoPE:])
	}
	return nil
}

// queries writes queries with their positions.
func (l *latent) queries(ctx context.Context, g *Generator, r *nn.Rotary, e *extension, q []float32) error {
	m, c, a := &g.memory, &g.config, g.config.MLA
	if l.queryNorm == nil {
		if err := l.query.multiply(ctx, q, &m.input, c.Workers); err != nil {
			return err
		}
	} else {
		raw := grow(&m.latent, e.rows*a.QueryRank)
		if err := l.queryDown.multiply(ctx, raw, &m.input, c.Workers); err != nil {
			return err
		}
		if err := l.fromLatent(ctx, g, &l.query, l.queryNorm, q, raw, e.rows); err != nil {
			return err
		}
	}
	rotated := grow(&m.rotated, e.rows*c.Heads*a.RoPE)
	for i := range e.rows * c.Heads {
		copy(rotated[i*a.RoPE:][:a.RoPE], q[i*g.keyDim+a.NoPE:])
	}
	if err := g.rotate(r, rotated, c.Heads, e); err != nil {
		return err
	}
	for i := range e.rows * c.Heads {
		copy(q[i*g.keyDim+a.NoPE:], rotated[i*a.RoPE:][:a.RoPE])
	}
	return nil
}

// fromLatent writes what a layer makes of a latent of rows.
func (l *latent) fromLatent(
	ctx context.Context, g *Generator, to *linear, norm *nn.RMSNorm, y, raw []float32, rows int,
) error {
	m := &g.memory
	normed := grow(&m.latentNormed, len(raw))
	if err := norm.Forward(ctx, normed, raw); err != nil {
		return err
	}
	if err := m.inner.set(ctx, normed, rows, g.options.FP8, g.config.Workers); err != nil {
		return err
	}
	return to.multiply(ctx, y, &m.inner, g.config.Workers)
}
