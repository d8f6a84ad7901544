package generate

import (
	"context"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
)

// Sequence is one request: the tokens that a generator has taken for it, as keys and values of
// every layer.
type Sequence struct {
	generator *Generator
	tokens    int // that every layer has
	limit     int
	layers    []cache
}

// NewSequence returns a sequence without tokens, for at most limit; 0 is the context of the
// model. The error is [ErrInput] for a limit beyond that.
func (g *Generator) NewSequence(limit int) (*Sequence, error) {
	if limit == 0 {
		limit = g.config.Context
	}
	if limit < 0 || limit > g.config.Context {
		return nil, inputError("a sequence for %d tokens: it must be for 1 to %d, the context of the model",
			limit, g.config.Context)
	}
	s := &Sequence{generator: g, limit: limit}
	for layer := range g.blocks {
		s.layers = append(s.layers, g.newCache(layer, limit))
	}
	return s, nil
}

// Len returns the number of tokens.
func (s *Sequence) Len() int { return s.tokens }

// Limit returns the largest number of tokens.
func (s *Sequence) Limit() int { return s.limit }

// Truncate removes the tokens from n on, so that others can follow those before. It panics
// unless n is from 0 to Len.
func (s *Sequence) Truncate(n int) {
	if n < 0 || n > s.tokens {
		panic("generate: no such number of tokens")
	}
	s.tokens = n
}

// bytes returns how many bytes of keys and values a step reads, those of its own token
// included.
func (s *Sequence) bytes() (n int64) {
	for i := range s.layers {
		n += int64(s.tokens) * int64(s.layers[i].k.tokenBytes()+s.layers[i].v.tokenBytes())
	}
	return n
}

// attend appends keys and values, [rows, KVHeads·headDim], which are those of the tokens that
// follow, to a layer's, and writes what its queries, [rows, Heads·headDim], see to out, which
// is as long.
func (s *Sequence) attend(ctx context.Context, layer int, out, q, k, v []float32) error {
	c := &s.layers[layer]
	if err := c.k.put(s.tokens, k); err != nil {
		return notFinite("keys of layer %d: %w", layer, err)
	}
	if err := c.v.put(s.tokens, v); err != nil {
		return notFinite("values of layer %d: %w", layer, err)
	}
	rows := len(q) / s.generator.config.Dim
	for lo := 0; lo < rows; {
		hi := c.v.sameLargest(s.tokens+lo, s.tokens+rows) - s.tokens
		if err := s.attendRows(ctx, c, out, q, lo, hi); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// attendRows is attend of rows [lo, hi) once keys and values are there.
func (s *Sequence) attendRows(ctx context.Context, c *cache, out, q []float32, lo, hi int) error {
	m, heads, dim := &s.generator.memory, s.generator.config.Heads, s.generator.config.Dim
	d, rows := dim/heads, hi-lo
	queries := grow(&m.queries, rows*dim)
	for h := range heads {
		for i := range rows {
			to := queries[(h*rows+i)*d:][:d]
			for j, x := range q[(lo+i)*dim+h*d:][:d] {
				to[j] = fp8.BFloat16FromFloat32(x)
			}
		}
	}
	p := attention.Problem{
		Q: attention.Operand{BFloat16: queries, Shape: [3]int{heads, rows, d}},
		K: c.k.operand(), V: c.v.operand(),
		Keys: s.tokens + hi, Mask: attention.Mask{Causal: true},
	}
	o := attention.Options{Workers: s.generator.options.Workers}
	seen := grow(&m.seen, rows*dim)
	if err := attention.Forward(ctx, seen, &p, o); err != nil {
		return err
	}
	for h := range heads {
		for i := range rows {
			copy(out[(lo+i)*dim+h*d:][:d], seen[(h*rows+i)*d:])
		}
	}
	return nil
}
